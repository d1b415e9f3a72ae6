"""Runs candidates on the forked children and keeps the account."""
import itertools
import math
import os
import time

from . import behave, procs, work
from .propose import Stream, identity
from .source import Source, Unreadable

MIN_CPU = .06
MIN_WAIT = .4
COMPARE_LEAST, COMPARE_SHARE, MAX_COMPARED = .5, .25, 8
PROGRESS_SECONDS = .25
AFTER_COST = .7
COLD_CPU = 1.0
MAX_BATCH = 32
ALONE_LATER = 400
SECOND_EDITS = 400
UNSEEN_PRICE = 1.2


def second_edits(ctx, ranked, partial):
    """Candidates that edit the partial fix's file once more; at most SECOND_EDITS."""
    first = partial.src
    try:
        again = Source(first.path, partial.new)
    except Unreadable:
        return iter(())
    if len(again.stmts) != len(first.stmts):
        return iter(())
    twin = dict(zip(first.stmts, again.stmts))
    moved = [(price, susp, again, twin[stmt]) for price, susp, src, stmt in ranked if src is first]
    known = {stmt for _, _, _, stmt in ranked}
    moved += [(UNSEEN_PRICE, .3, again, twin[s]) for s in first.stmts
              if s not in known and s._func is not None and s._func is partial.stmt._func]
    return itertools.islice(with_base(Stream(ctx, moved), partial), SECOND_EDITS)


def with_base(stream, partial):
    for candidate in stream:
        candidate.number += 1 + partial.number << 32
        candidate.cost += max(0.0, partial.cost) + 1.0
        candidate.op = "%s, %s" % (partial.op, candidate.op)
        yield candidate


class Bench:
    """Two candidates at a time: swapped into the hot server, or imported afresh."""

    def __init__(self, repair, setup, traced, failing, passing, located, ctx, ranked):
        self.repair, self.setup, self.located, self.ctx, self.ranked = repair, setup, located, ctx, ranked
        self.talk, self.nursery, self.report = repair.talk, repair.nursery, repair.report
        self.failing, self.passing = failing, passing
        seconds = {t["id"]: t["seconds"] for t in traced["tests"] if not t.get("timeout")}
        known = sorted(seconds.values())
        typical = known[len(known) // 2] if known else .01
        # Limits are for one test: a candidate's first red test ends it anyway.
        self.cpu = MIN_CPU + 4 * max([seconds.get(i, typical) for i in failing])
        self.cpu_passing = MIN_CPU + 4 * max([seconds.get(i, typical) for i in passing] or [0.0])
        self.wait = MIN_WAIT + 4 * max([seconds.get(i, typical) for i in failing])
        self.wait_passing = MIN_WAIT + 4 * max([seconds.get(i, typical) for i in passing] or [0.0])
        self.wall = 2.0 + 4 * sum(seconds.get(i, typical) for i in failing + passing)
        self.scale = 1.0
        self.running = {}
        self.plausible, self.partials, self.slow, self.again = [], [], [], []
        self.unsure, self.company, self.slots = [], [], []
        self.judged, self.probing, self.extra = [], False, None
        self.batch = 2
        self.known = set()
        self.workers = 1 if repair.guard.noise else repair.request["workers"]
        self.control = self.answers = None
        self.inbox = procs.Inbox()
        self.told = self.checked = 0.0
        self.first_at = None
        self.watching = False
        if not traced["errors"]:
            self._start_hot()

    def _start_hot(self):
        down, self.control = os.pipe()
        self.answers, up = os.pipe()
        mine = [self.control, self.answers]

        def serve(fd):
            for own in mine:
                os.close(own)
            work.serve_hot(self.setup, down, up)

        self.hot = self.nursery.spawn(serve, 1e9, "hot", memory=4 * self.setup["memory"])
        self.nursery.private += mine
        os.close(down)
        os.close(up)
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            self.talk.alive()
            finished, readable = self.nursery.poll([self.answers], .2)
            if readable or self.hot in finished:
                messages = self._read_hot()
                if messages and messages[0].get("ready"):
                    return
                break
        self._stop_hot()

    def _read_hot(self):
        block = os.read(self.answers, 1 << 16)
        if not block:
            self._stop_hot()
            return []
        return self.inbox.feed(block)

    def _stop_hot(self):
        if self.control is None:
            return
        for fd in (self.control, self.answers):
            os.close(fd)
            self.nursery.private.remove(fd)
        self.control = self.answers = None
        for number, (candidate, hot) in list(self.running.items()):
            if hot:
                self._take(number)
                self._retry(candidate)

    def _take(self, number):
        """Takes a candidate off the running ones and frees its place when the batch is through."""
        for slot in self.slots:
            slot.discard(number)
        self.slots = [s for s in self.slots if s]
        return self.running.pop(number)[0]

    def _retry(self, candidate):
        candidate.tries += 1
        candidate.alone = True
        if candidate.tries < 3:
            self.again.append(candidate)

    def close(self):
        self._stop_hot()

    def search(self, stream):
        """Judges until the list, the time or the appetite ends; returns the reason when nothing was found."""
        while True:
            self.talk.alive()
            self._progress(stream)
            self._fill(self.extra if self.extra is not None else stream)
            if self.running:
                self._collect()
                if self._enough():
                    break
            elif not self._mend() and not self._second_wind():
                break
        self.report["faults"].update(stream.faults)
        self._progress(stream, True)
        if not self.plausible:
            late = time.monotonic() >= self.repair.end
            return "the time was up" if late else "no candidate turned the failing tests green"
        self._compare()
        return None

    def _compare(self):
        """Tells the plausible candidates apart, as far as COMPARE_SHARE of the time so far allows."""
        now = time.monotonic()
        end = min(self.repair.end, now + max(COMPARE_LEAST, COMPARE_SHARE * (now - self.repair.began)))
        self.watching, self.again = True, self.plausible[:min(MAX_COMPARED, self.repair.request["limit"])]
        compared = list(self.again)
        for candidate in compared:
            candidate.alone, candidate.behaviour = True, None
        # What still runs was not needed; its answers are not waited for.
        self.running, self.slots = {}, []
        while (self.again or self.running) and time.monotonic() < end and len(compared) > 1:
            self.talk.alive()
            self._fill(iter(()))
            if not self.running:
                break
            self._collect()
        for candidate, number in zip(compared, behave.classes([c.behaviour for c in compared])):
            if number is not None:
                self.report["behaviours"][candidate.id] = number

    def _second_wind(self):
        """With nothing found: what was too slow with more time, then what failed in company alone."""
        if self.plausible or time.monotonic() >= self.repair.end:
            return False
        if self.slow and self.scale == 1.0 and self.extra is None:
            self.scale = max(8.0, min(80.0, 2 * self.setup["test_seconds"] / self.cpu))
            self.again, self.slow = self.slow, []
        elif self.company and self.extra is None:
            self.again, self.company = sorted(self.company, key=lambda c: c.cost)[:ALONE_LATER], []
        elif not self.probing and len(self.failing) > 1:
            self.probing = True
            self.again, self.judged = sorted(self.judged, key=lambda c: c.cost)[:ALONE_LATER], []
        elif self.partials:
            self._seed(self.partials.pop(0)[-1])
        else:
            return False
        for candidate in self.again:
            candidate.alone = True
        return True

    def _seed(self, partial):
        """Starts a search for the second edit on top of one that turned a failing test green."""
        self.extra = second_edits(self.ctx, self.ranked, partial)

    def _fill(self, source):
        while len(self.slots) < self.workers and not self._damaged():
            first = self._next(source)
            if first is None:
                return
            if not self._is_hot(first):
                self._send_cold(first)
                continue
            batch = [first]
            while not first.alone and len(batch) < self.batch:
                other = self._next(source)
                if other is None:
                    break
                if other.alone or not self._is_hot(other):
                    self.again.insert(0, other)
                    break
                batch.append(other)
            self._send_hot(batch)

    def _next(self, source):
        if time.monotonic() >= self.repair.end:
            return None
        while True:
            candidate = self.again.pop(0) if self.again else next(source, None)
            if candidate is None:
                return None
            if candidate.id is not None:
                return candidate
            if self.plausible and candidate.cost > self.plausible[0].cost + AFTER_COST:
                return None
            candidate.tidy()
            utf8 = candidate.utf8()
            if utf8 is None:
                continue
            try:
                candidate.new = candidate.src.encoded(utf8)
            except UnicodeError:
                continue
            candidate.id = identity(candidate.src.path, candidate.new)
            if candidate.id not in self.known:
                return candidate

    def _is_hot(self, candidate):
        if candidate.is_hot is None:
            candidate.is_hot = candidate.hot(self.located.imported)
        return self.control is not None and candidate.is_hot

    def _job(self):
        return {"failing": self.failing, "watch": self.watching, "passing": self.passing, "all": self.probing and self.extra is None,
                "cpu": self.cpu * self.scale, "cpu_passing": self.cpu_passing * self.scale,
                "wait": self.wait * self.scale, "wait_passing": self.wait_passing * self.scale, "wall": self.wall + 8 * self.scale * self.cpu}

    def _send_cold(self, candidate):
        self.report["cold"] += 1
        job = self._job()
        job["files"] = {candidate.src.path: candidate.utf8().decode("utf-8")}
        self.running[candidate.number] = (candidate, False)
        self.slots.append({candidate.number})
        self.nursery.spawn(lambda fd: work.judge_cold(self.setup, job, fd), job["wall"], candidate.number, COLD_CPU + job["cpu"],
                           self.setup["memory"])

    def _send_hot(self, batch):
        self.report["hot"] += len(batch)
        job = self._job()
        job["wall"] += 4 * len(batch) * self.cpu
        job["batch"] = [{"job": c.number, "files": {c.src.path: c.utf8().decode("utf-8")}} for c in batch]
        for candidate in batch:
            candidate.company = len(batch) > 1
            self.running[candidate.number] = (candidate, True)
        self.slots.append({c.number for c in batch})
        if len(batch) == self.batch:
            self.batch = min(MAX_BATCH, 2 * self.batch)
        try:
            procs.send(self.control, job)
        except BrokenPipeError:
            self._stop_hot()

    def _collect(self):
        extra = [self.answers] if self.answers is not None else []
        children, readable = self.nursery.poll(extra, .1)
        answers = []
        for child in children:
            if child.tag == "hot":
                self._stop_hot()
            else:
                answers.append((child.tag, child.messages[-1]))
        if readable and self.answers is not None:
            answers += [(m.get("job"), m) for m in self._read_hot()]
        for number, answer in answers:
            if number in self.running:
                self._judge(self._take(number), answer)

    def _judge(self, candidate, answer):
        verdict = answer.get("verdict")
        if self.watching and verdict != "cold":
            candidate.behaviour = answer.get("behaviour")
            return
        if verdict == "cold":
            candidate.is_hot = False
        if verdict in ("cold", "again", "survivor"):
            candidate.alone = candidate.alone or verdict == "survivor"
            self.again.append(candidate)
            return
        self.report["tried"] += 1
        if verdict == "pass":
            self.known.add(candidate.id)
            self._found(candidate)
            return
        if verdict == "timeout":
            self.report["timeouts"] += 1
            self.slow.append(candidate)
        elif verdict == "partial":
            self.report["partial"] += 1
            self.partials.append((-answer["green"], candidate.cost, candidate.number, candidate))
            self.partials.sort()
        elif candidate.company:
            self.company.append(candidate)
        if not self.probing:
            self.judged.append(candidate)
        self.unsure.append(candidate)

    def _found(self, candidate):
        if self.first_at is None:
            self.first_at = time.monotonic()
        self.plausible.append(candidate)
        self.plausible.sort(key=lambda c: (c.cost, c.number))
        self.report["plausible"] = len(self.plausible)
        self.report["first_seconds"] = self.first_at - self.repair.began
        self.talk.say("fix", path=candidate.src.path, id=candidate.id, operator=candidate.op, line=candidate.line,
                      cost=candidate.cost, score=round(1 / (1 + math.exp(candidate.cost)), 6), new=candidate.new.hex(),
                      reason="%s at %s:%d" % (candidate.op, candidate.src.path, candidate.line))

    def _enough(self):
        """Whether to stop: the time is up, the list is full of better ones, or the first fix is old enough."""
        now = time.monotonic()
        if now >= self.repair.end:
            return True
        if self.first_at is None:
            return False
        limit = self.repair.request["limit"]
        if len(self.plausible) >= limit:
            worst = self.plausible[limit - 1].cost
            waiting = [c for c, _ in self.running.values()] + self.again
            return not any(c.cost < worst for c in waiting)
        return now - self.first_at > max(.5, .5 * (self.first_at - self.repair.began))

    def _damaged(self):
        """Whether a child altered the tree; checked at most a tenth of the time."""
        now = time.monotonic()
        if not self.unsure or now < self.checked:
            return False
        damage = self.repair.guard.damage()
        took = time.monotonic() - now
        self.checked = time.monotonic() + 9 * took
        if not damage:
            self.unsure = []
        return bool(damage)

    def _mend(self):
        """Restores the tree while no child runs, and has those judged again whose verdict may be wrong."""
        if not self.repair.guard.restore():
            return False
        self.report["damaged"] += 1
        for candidate in self.unsure:
            self._retry(candidate)
        self.unsure = []
        return True

    def _progress(self, stream, last=False):
        now = time.monotonic()
        if last or now - self.told > PROGRESS_SECONDS:
            self.told = now
            done = self.report["tried"]
            self.talk.say("progress", done=done, total=done + len(self.running) + (0 if last else stream.left()))
