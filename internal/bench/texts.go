package bench

// passages are texts to embed and to quote, in English and Korean, short and long.
var passages = []string{
	"The harbour master keeps three logs. The first lists every ship that enters, with its draught and the pilot who brought it in; the second lists the cargo by weight; the third is for the weather, which is read at six in the morning and again at noon.",
	"A block of the cache holds sixteen tokens. When a request ends, its blocks are not erased: they stay until another request needs the room, so that a question that begins with the same text finds them again and starts where the old one left off.",
	"Sourdough takes its time. Feed the starter the evening before with equal parts of flour and water, leave it near the stove, and mix the dough when a spoonful of it floats. Fold it every half hour for three hours, shape it, and let it rest in the cold until morning.",
	"The third clause of the agreement says that either side may withdraw within thirty days, that notice must be given in writing, and that deposits are returned in full unless work has already begun, in which case half is kept.",
	"The old railway climbs 412 metres in nine kilometres. Two engines were needed for the heaviest trains, one in front and one behind, and the drivers spoke to each other by whistle: one long note to start, two short ones to stop.",
}

var koreanPassages = []string{
	"도서관은 평일 오전 아홉 시에 문을 열고 저녁 여덟 시에 닫는다. 주말에는 두 시간 일찍 닫으며, 공휴일에는 쉰다. 빌린 책은 두 주 안에 돌려주어야 하고, 한 번까지 기간을 늘릴 수 있다.",
	"이 등대는 언덕 위 서른네 미터 높이에 서 있다. 맑은 밤이면 스무 킬로미터 떨어진 배에서도 불빛이 보이며, 안개가 낀 날에는 나팔을 일 분에 두 번 울린다.",
	"된장은 콩을 삶아 찧고 메주를 띄우는 일에서 시작된다. 메주를 소금물에 담가 두 달을 두면 간장과 된장으로 나뉘고, 된장은 다시 여러 달 볕을 쬐며 익는다.",
	"신청서는 접수한 날부터 열흘 안에 처리한다. 서류가 모자라면 담당자가 전화로 알리고, 그날부터 닷새를 더 기다린다. 기간이 지나면 신청은 없던 것으로 한다.",
}

var queries = []string{
	"How many logs does the harbour master keep?",
	"What happens to the blocks of a request that ended?",
	"도서관은 주말에 몇 시에 닫나요?",
	"Within how many days may a side withdraw?",
	"등대의 불빛은 얼마나 멀리서 보이나요?",
}
