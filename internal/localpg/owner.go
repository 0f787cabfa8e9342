package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that the server runs as.
type owner struct {
	name     string
	uid, gid int
	// drop is set when ragd is root and must become this user to run PostgreSQL.
	drop bool
}

// systemUsers are tried in this order when ragd is root.
var systemUsers = []string{"ragd", "postgres", "nobody"}

// chooseOwner finds who runs the server: ragd's own user, or, when that is
// root, the owner of the existing cluster, else a system user.
func chooseOwner(cluster string) (owner, error) {
	if uid := os.Geteuid(); uid != 0 {
		u, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return owner{}, fmt.Errorf("PostgreSQL needs a user name, and user id %d has none (add it to /etc/passwd): %w", uid, err)
		}
		return owner{name: u.Username, uid: uid, gid: os.Getegid()}, nil
	}
	if info, err := os.Stat(cluster); err == nil {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 {
			return lookupOwner(user.LookupId(strconv.Itoa(int(st.Uid))))
		}
	}
	for _, name := range systemUsers {
		if own, err := lookupOwner(user.Lookup(name)); err == nil && own.uid != 0 {
			return own, nil
		}
	}
	return owner{}, errors.New("PostgreSQL refuses to run as root and there is no user ragd, postgres or nobody; create one: useradd --system ragd")
}

func lookupOwner(u *user.User, err error) (owner, error) {
	if err != nil {
		return owner{}, fmt.Errorf("owner of the database: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return owner{}, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return owner{name: u.Username, uid: uid, gid: gid, drop: true}, nil
}

// sysProcAttr puts the child into a process group of its own and, under root,
// makes it the owner.
func (o owner) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if o.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return attr
}

// mkdir makes a folder that the owner alone may enter.
func (o owner) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.take(dir)
}

// take gives a file or folder to the owner.
func (o owner) take(path string) error {
	if !o.drop {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// canReach checks that the owner may pass through every folder down to and
// including each of dirs. Only root needs to ask: an ordinary user came this way.
func (o owner) canReach(dirs ...string) error {
	if !o.drop {
		return nil
	}
	for _, dir := range dirs {
		if err := o.passes(dir); err != nil {
			return err
		}
	}
	return nil
}

// passes walks from dir up to the root and names the outermost folder that
// stops the owner.
func (o owner) passes(dir string) error {
	if parent := filepath.Dir(dir); parent != dir {
		if err := o.passes(parent); err != nil {
			return err
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("database folder: %w", err)
	}
	st := info.Sys().(*syscall.Stat_t)
	bit := fs.FileMode(0o001)
	switch {
	case int(st.Uid) == o.uid:
		bit = 0o100
	case int(st.Gid) == o.gid:
		bit = 0o010
	}
	if info.Mode().Perm()&bit != 0 {
		return nil
	}
	return fmt.Errorf("%w: PostgreSQL cannot run as root and user %q, which it runs as, may not pass through %s; "+
		"allow it (chmod o+x %s), set $RAGD_HOME to a folder elsewhere such as /var/lib/ragd, or run ragd as an ordinary user",
		ErrNotTraversable, o.name, dir, dir)
}
