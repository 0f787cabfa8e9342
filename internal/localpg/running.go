package localpg

import (
	"errors"
	"fmt"
	"path/filepath"
)

// ErrNotRunning: no server runs in the data folder.
var ErrNotRunning = errors.New("the private PostgreSQL is not running")

// RunningURL is the connection string of the server that runs in a data folder,
// whoever started it.
func RunningURL(data string) (string, error) {
	cluster, err := filepath.EvalSymlinks(newLayout(data).cluster) // as Start does
	if err != nil {
		return "", fmt.Errorf("%w in %s: start ragd serve", ErrNotRunning, data)
	}
	pid, socket, err := readPostmaster(filepath.Join(cluster, "postmaster.pid"))
	if err != nil || !isPostmaster(pid, cluster) {
		return "", fmt.Errorf("%w in %s: start ragd serve", ErrNotRunning, data)
	}
	return connURL(socket, database), nil
}
