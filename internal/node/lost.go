package node

import (
	"context"
	"fmt"

	"nexuscore.dev/nexus/internal/agents"
	"nexuscore.dev/nexus/internal/rollback"
)

// undo takes back what a run left whose log is gone, by its journal alone, and
// says what it did; the text is empty when the run left nothing. The claim is
// the caller's to release, unless there is an error: then somebody has to look
// at the folder first.
func (n *Node) undo(ctx context.Context, c rollback.Claim) (text string, err error) {
	if !exists(c.Dir) {
		return fmt.Sprintf("the log of the interrupted run %s is gone, and its folder %s too", c.Run, c.Dir), nil
	}
	rep, journal, err := agents.Undo(ctx, n.cfg.State, c.Run, c.Dir, n.client.Artifacts())
	switch {
	case err != nil:
		return "", fmt.Errorf("the log of the interrupted run %s is gone, and %s could not be put back by its journal alone: %w; "+
			"look at the folder, then remove %s to go on with it as it stands", c.Run, c.Dir, err, journal)
	case !exists(journal):
		return "", nil
	case len(rep.Conflicts) > 0:
		return fmt.Sprintf("the log of the interrupted run %s is gone; %s was put back by its journal except %d path(s) that somebody else changed: "+
			"what they were lies in saved/%s/base of the state folder", c.Run, c.Dir, len(rep.Conflicts), c.Run), nil
	}
	return fmt.Sprintf("the log of the interrupted run %s is gone; %s was put back by its journal alone (%d path(s))", c.Run, c.Dir, len(rep.Restored)), nil
}

// undoLost puts back the folders of dead runs of this state folder whose logs
// are gone, as when its streams were removed. It runs before any worker does.
func (n *Node) undoLost(ctx context.Context) error {
	claims, err := n.cfg.Claims.List()
	if err != nil {
		return err
	}
	queued, err := n.client.QueuedTasks(ctx)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if c.State != n.cfg.State || c.Alive() {
			continue
		}
		if err := n.undoRun(ctx, c, queued > 0); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n.cfg.Log.Error().Err(err).Str("run", c.Run).Msg("the folder stays claimed")
		}
	}
	return nil
}

// undoRun is undo for a claim that nobody asks for now. A run without log and
// journal may still be in the queue.
func (n *Node) undoRun(ctx context.Context, c rollback.Claim, queued bool) error {
	s, err := n.state(ctx, c.Run)
	if err != nil || s.N > 0 {
		return err
	}
	text, err := n.undo(ctx, c)
	if err != nil || (text == "" && queued) {
		return err
	}
	if text != "" {
		n.cfg.Log.Error().Str("run", c.Run).Msg(text)
	}
	return n.cfg.Claims.Release(c.Run)
}
