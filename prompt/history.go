package prompt

// Utterance is one message of an earlier conversation; Role is "user" or
// "assistant".
type Utterance struct{ Role, Text string }

// Turn is what is kept or dropped together: a question with its answer.
type Turn []Utterance

// Turns groups a conversation. A turn starts at each message of the user;
// messages before the first of them are a turn of their own.
func Turns(history []Utterance) []Turn {
	var turns []Turn
	for _, u := range history {
		if u.Role == "user" || len(turns) == 0 {
			turns = append(turns, nil)
		}
		last := len(turns) - 1
		turns[last] = append(turns[last], u)
	}
	return turns
}
