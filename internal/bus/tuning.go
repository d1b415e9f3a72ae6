package bus

import "time"

// tuning holds the times and counts that tests make small.
type tuning struct {
	// ackWait is how long a message may be in hand without a sign of life.
	ackWait time.Duration
	// heartbeat is how often a worker in progress extends its claim.
	heartbeat time.Duration
	// retryDelay is how long a message rests that could not be handled
	// because the bus or the disk did not take the answer; it grows with the
	// number of deliveries up to retryMax.
	retryDelay time.Duration
	// pullExpiry is how long a request for messages stands, at least 1 s; a
	// lost one is noticed within two pullBeats.
	pullExpiry time.Duration
	pullBeat   time.Duration
	// maxDeliver is the server's own guard. It counts every delivery, also
	// those after a shutdown or an outage, so it is far above maxTries.
	maxDeliver int
	// maxTries is how often an ask may be begun again after its worker was
	// lost with it in hand.
	maxTries int
	// maxNewer is how often a message of a newer version is handed back, each
	// time for newerRest; ten minutes are enough to bring a newer worker up.
	maxNewer  uint64
	newerRest time.Duration
	// fullFor is how long an answer about the space left is believed.
	fullFor time.Duration
	// hook hears of each publish, before and after it; for tests that break
	// the connection at that moment.
	hook func(subject string, stored bool)
}

const (
	retryMax = 30 * time.Second
	// drainTime bounds how long a stopping process waits for what is still on
	// its way to it, and for a last outcome to be stored.
	drainTime = 2 * time.Second
)

func tuned() tuning {
	return tuning{
		ackWait: 15 * time.Second, heartbeat: 4 * time.Second, retryDelay: time.Second,
		pullExpiry: 5 * time.Second, pullBeat: time.Second, maxDeliver: 200, maxTries: 5, fullFor: 3 * time.Second,
		maxNewer: 60, newerRest: 10 * time.Second,
	}
}
