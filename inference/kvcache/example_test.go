package kvcache_test

import (
	"fmt"

	"ragd/inference/kvcache"
)

// Two questions begin with the same 32 tokens; the second takes them over.
func Example() {
	pool := kvcache.NewPool(100, kvcache.Config{})
	prompt := make([]int32, 40)

	first, _ := pool.Reserve(prompt, 60, "tenant-a")
	pool.Commit(first, prompt)
	pool.Release(first)

	second, _ := pool.Reserve(prompt, 60, "tenant-a")
	fmt.Println(second.Cached(), "tokens cached,", pool.InUse(), "blocks in use")
	// Output: 32 tokens cached, 4 blocks in use
}
