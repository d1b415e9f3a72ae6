package bus

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nexuscore.dev/nexus/internal/run"
	"nexuscore.dev/nexus/internal/wire"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestCPU(t *testing.T) {
	if os.Getenv("CPUTEST") == "" {
		t.Skip()
	}
	b := start(t, setup{sync: os.Getenv("CPUTEST") == "sync", workers: healers()})
	hop := b.hopper(t)
	n := 0
	heal := func() time.Duration {
		n++
		began := time.Now()
		id, err := b.core.Submit(t.Context(), "local", fmt.Sprint("k", n), wire.Heal{Dir: "/p"})
		require.NoError(t, err)
		s := b.finish(id)
		require.Equal(t, run.Approved, s.Ended.State)
		return time.Since(began) / healSteps
	}
	for range 20 {
		heal()
	}
	for range 3 {
		c := cpu()
		var w []time.Duration
		for range 200 {
			w = append(w, heal())
		}
		s := (cpu() - c) / 200 / healSteps
		c = cpu()
		var h []time.Duration
		if os.Getenv("NOHOP") == "" {
			for range 200 {
				h = append(h, hop())
			}
		} else {
			h = append(h, 1)
		}
		hc := (cpu() - c) / 200 / healSteps
		fmt.Printf("cpu step %v hop %v ratio %.2f | wall step %v hop %v ratio %.2f\n", s, hc, float64(s)/float64(hc), median(w), median(h), float64(median(w))/float64(median(h)))
	}
}
