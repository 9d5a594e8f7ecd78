package dev.millrace.gateway;

import dev.millrace.gateway.Session.SessionId;
import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.schemas.SessionEvent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/** Released samples, free or played by sessions. Thread-safe. */
final class SessionTable {
    private static final int REMEMBERED_ENDS = 10_000;

    private final int mostSessions;
    private final Map<String, ReleasedSample> unfinished = new HashMap<>();
    /** In order of release. */
    private final Map<String, ReleasedSample> free = new LinkedHashMap<>();

    private final Map<String, Session> open = new HashMap<>();
    private final Map<String, Session> ended = new Remembered<>();
    private final Map<String, SessionEvent> endedBefore = new Remembered<>();
    /** Offset behind the newest taken prompt, by partition. */
    private final Map<Integer, Long> taken = new HashMap<>();

    SessionTable(int mostSessions) {
        this.mostSessions = mostSessions;
    }

    /**
     * Adds a prompt.
     *
     * @param isOver samples finished before
     * @return requests that are thereby finished, once per sample
     */
    synchronized List<AcceptedPrompt> add(AcceptedPrompt prompt, IntPredicate isOver, IntPredicate isPlayed) {
        List<AcceptedPrompt> finished = new ArrayList<>();
        for (int index = 0; index < prompt.request().getSamples(); index++) {
            ReleasedSample sample = new ReleasedSample(prompt, index);
            ReleasedSample before = unfinished.get(sample.name());
            if (isOver.test(index)) {
                finished.add(prompt);
            } else if (before != null) {
                before.isAskedBy(prompt); // released again while it is under way here
            } else {
                unfinished.put(sample.name(), sample);
                if (!isPlayed.test(index)) {
                    free.put(sample.name(), sample);
                }
            }
        }
        notifyAll();
        return finished;
    }

    /** Adds another gateway's session; its sample was never free here. */
    synchronized void restore(Session session) {
        open.put(session.id().text(), session);
    }

    /** Null if it is finished. */
    synchronized @Nullable ReleasedSample unfinished(String name) {
        return unfinished.get(name);
    }

    synchronized int freeSamples() {
        return free.size();
    }

    synchronized int openSessions() {
        return open.size();
    }

    /**
     * Takes a free sample.
     *
     * @param group null for the oldest
     * @param index -1 for any
     * @param waitMs longest wait
     */
    synchronized ReleasedSample claim(@Nullable String group, int index, long waitMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
        while (true) {
            if (open.size() >= mostSessions) {
                throw RefusedCallException.tooMany(
                        "too_many_sessions",
                        "there are " + open.size()
                                + " sessions open, the most allowed (gateway.sessions); complete some");
            }
            ReleasedSample found = find(group, index);
            if (found != null) {
                free.remove(found.name());
                return found;
            }
            if (group != null && index >= 0 && unfinished.containsKey(group + "/" + index)) {
                throw RefusedCallException.conflict(
                        "the sample " + group + "/" + index + " is played by another session");
            }
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (left <= 0) {
                throw RefusedCallException.notNow(
                        "no_sample",
                        "no sample " + (group == null ? "" : "of group " + group + " ") + "is free within " + waitMs
                                + " ms (gateway.claim_wait_ms): admission releases samples up to admission.eta only, "
                                + open.size() + " sessions are open; complete them, or retry later");
            }
            try {
                wait(left);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw RefusedCallException.notNow("closing", "the gateway is being closed");
            }
        }
    }

    private @Nullable ReleasedSample find(@Nullable String group, int index) {
        if (group != null && index >= 0) {
            return free.get(group + "/" + index);
        }
        for (ReleasedSample sample : free.values()) {
            if ((group == null || group.equals(sample.prompt().request().getGroupId()))
                    && (index < 0 || sample.index() == index)) {
                return sample;
            }
        }
        return null;
    }

    /**
     * Takes further samples of a session's group, all or none.
     *
     * @throws RefusedCallException if too few are free
     */
    synchronized List<ReleasedSample> claimBeside(Session session, int count) {
        String group = session.sample().prompt().request().getGroupId();
        List<ReleasedSample> found = free.values().stream()
                .filter(sample -> sample.prompt().request().getGroupId().equals(group))
                .limit(count)
                .toList();
        if (found.size() < count) {
            throw RefusedCallException.conflict("of the group " + group + " " + found.size()
                    + " samples are free, and " + count
                    + " further branches need one each: sessions play the others of its "
                    + session.sample().prompt().request().getSamples()
                    + "; name fewer branches, or open fewer sessions of a group");
        }
        found.forEach(sample -> free.remove(sample.name()));
        return found;
    }

    /** A sample without a session became a rollout. */
    synchronized void finished(ReleasedSample sample) {
        unfinished.remove(sample.name(), sample);
        notifyAll();
    }

    synchronized void opened(Session session) {
        open.put(session.id().text(), session);
    }

    synchronized void giveBack(ReleasedSample sample) {
        boolean isPlayed = open.values().stream().anyMatch(session -> session.sample() == sample);
        if (!isPlayed && unfinished.get(sample.name()) == sample) {
            free.put(sample.name(), sample);
            notifyAll();
        }
    }

    /**
     * Sessions may be over.
     *
     * @throws RefusedCallException if there is none, or none yet
     */
    synchronized Session session(String text) {
        Session session = open.get(text);
        if (session == null) {
            session = ended.get(text);
        }
        if (session != null) {
            return session;
        }
        if (endedBefore.containsKey(text)) {
            throw RefusedCallException.conflict("the session " + text + " has ended; open another one");
        }
        SessionId id = SessionId.parse(text)
                .orElseThrow(() -> RefusedCallException.notFound("no gateway gives a session the name '" + text + "'"));
        if (taken.getOrDefault(id.partition(), -1L) <= id.offset()) {
            throw RefusedCallException.notNow(
                    "session_elsewhere",
                    "the session " + text
                            + " is not here: it is being read back from the log, or another gateway has it");
        }
        throw RefusedCallException.notFound("there is no session " + text + "; it has ended, or was never opened");
    }

    /** A committed end; the sample is finished, or free again. */
    synchronized void ended(Session session, boolean isFinished) {
        open.remove(session.id().text());
        ended.put(session.id().text(), session);
        if (isFinished) {
            unfinished.remove(session.sample().name(), session.sample());
            notifyAll();
        } else {
            giveBack(session.sample());
        }
    }

    /** All earlier sessions of the partition's prompts up to the offset are restored. */
    synchronized void hasTaken(int partition, long behind) {
        taken.put(partition, behind);
    }

    synchronized void remember(SessionEvent end) {
        endedBefore.put(end.getSessionId(), end);
    }

    synchronized @Nullable SessionEvent endedBefore(String id) {
        return endedBefore.get(id);
    }

    synchronized boolean isOpen(Session session) {
        return open.get(session.id().text()) == session;
    }

    /** True if its sample is assigned here without interruption, and unfinished. */
    synchronized boolean isHere(Session session) {
        return unfinished.get(session.sample().name()) == session.sample();
    }

    synchronized void drop(Session session) {
        open.remove(session.id().text());
    }

    synchronized List<Session> open() {
        return List.copyOf(open.values());
    }

    /** The prompts moved to another gateway. */
    synchronized void forget(Set<TopicPartition> gone) {
        removeOf(gone, unfinished.values().iterator());
        removeOf(gone, free.values().iterator());
        open.values()
                .removeIf(session -> gone.contains(session.sample().prompt().partition()));
        gone.forEach(partition -> taken.remove(partition.partition()));
    }

    private static void removeOf(Set<TopicPartition> gone, Iterator<ReleasedSample> samples) {
        while (samples.hasNext()) {
            if (gone.contains(samples.next().prompt().partition())) {
                samples.remove();
            }
        }
    }

    /** A bounded map of the newest entries. */
    private static final class Remembered<V> extends LinkedHashMap<String, V> {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
            return size() > REMEMBERED_ENDS;
        }
    }
}
