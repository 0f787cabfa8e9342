// Package importtest holds the rules of which package may import which.
package importtest
