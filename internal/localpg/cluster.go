package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// initCluster makes the cluster when there is none. initdb works in a folder
// beside it that is renamed at the end: a cluster is there wholly or not at all.
func (s *Server) initCluster(ctx context.Context, own owner) error {
	_, err := os.Stat(filepath.Join(s.lay.cluster, "PG_VERSION"))
	if err == nil {
		return own.takeCluster(s.lay.cluster)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("database cluster: %w", err)
	}
	draft := s.lay.cluster + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	if err := own.mkdir(draft); err != nil {
		return fmt.Errorf("create the cluster folder: %w", err)
	}
	if err := initdb(ctx, s.cfg.Install, draft, own); err != nil {
		return err
	}
	if err := os.Rename(draft, s.lay.cluster); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	s.log.Info("database cluster created", "data", s.lay.cluster)
	return nil
}

// initdb runs the program of that name. The locale provider "builtin" needs no
// locale of the operating system and sorts the same everywhere.
func initdb(ctx context.Context, install, dir string, own owner) error {
	cmd := exec.CommandContext(ctx, filepath.Join(install, "bin", "initdb"),
		"-D", dir, "-U", role, "-E", "UTF8", "--auth=peer",
		"--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions")
	cmd.SysProcAttr = own.sysProcAttr()
	cmd.Env = environment()
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, lastBytes(out.Bytes(), 2000))
	}
	return nil
}

// takeCluster hands a cluster that lies under root's name (a restored backup)
// to the user that the server runs as.
func (o owner) takeCluster(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("database cluster: %w", err)
	}
	if !o.drop || int(info.Sys().(*syscall.Stat_t).Uid) == o.uid {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("database cluster: %w", err)
		}
		return o.take(path)
	})
}

// writeAccess writes pg_hba.conf and pg_ident.conf: over the socket the owner
// and root may become the one role; there is no other way in.
func writeAccess(cluster string, own owner) error {
	hba := "local all all peer map=ragd\n"
	ident := ""
	for _, name := range []string{own.name, "root"} {
		ident += fmt.Sprintf("ragd %s %s\n", quoteConf(name), role)
	}
	for name, text := range map[string]string{"pg_hba.conf": hba, "pg_ident.conf": ident} {
		path := filepath.Join(cluster, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := own.take(path); err != nil {
			return err
		}
	}
	return nil
}

// quoteConf quotes a word for PostgreSQL's access files and name lists.
func quoteConf(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// environment is what PostgreSQL's programs see: none of the caller's PG*
// variables, and messages in English, as the error matching expects.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
