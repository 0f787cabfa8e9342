package localpg_test

import (
	"context"
	"errors"
	"fmt"

	"ragd/internal/localpg"
)

func ExampleStart() {
	ctx := context.Background()
	pg, err := localpg.Start(ctx, localpg.Config{Install: "/opt/ragd/postgres", Data: "/var/lib/ragd/pg"})
	if errors.Is(err, localpg.ErrInUse) {
		fmt.Println("another ragd runs here")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pg.Stop(ctx)
	fmt.Println(pg.URL())
}
