// Package testenv gives tests the real models and the real database, which it
// brings through the same code as set-up. What it cannot bring fails the test
// and never skips it.
package testenv
