//go:build !amd64

package kernel

// nativeSets is empty where no assembly has been written yet.
func nativeSets() []*Set { return nil }
