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

/**
 * The samples that were released to this gateway, those of them that nobody plays, and the sessions that play the others.
 * Thread-safe.
 */
final class SessionTable {
    private static final int REMEMBERED_ENDS = 10_000;

    private final int mostSessions;
    private final Map<String, ReleasedSample> unfinished = new HashMap<>();
    /** By name, in the order in which they were released. */
    private final Map<String, ReleasedSample> free = new LinkedHashMap<>();

    private final Map<String, Session> open = new HashMap<>();
    private final Map<String, Session> ended = new Remembered<>();
    private final Map<String, SessionEvent> endedBefore = new Remembered<>();
    /** Behind the newest prompt that was taken, by partition. */
    private final Map<Integer, Long> taken = new HashMap<>();

    SessionTable(int mostSessions) {
        this.mostSessions = mostSessions;
    }

    /**
     * A prompt has come.
     *
     * @param isOver of its samples, whether it was finished before
     * @param isPlayed whether a session that was open before plays it, which is to be restored
     * @return requests of a sample each that are finished with that, this prompt once for each
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

    /** A session that another gateway, or this one's life before, has opened; its sample was never free here. */
    synchronized void restore(Session session) {
        open.put(session.id().text(), session);
    }

    /** The sample of a prompt that is not finished; null if it is. */
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
     * Takes a sample that nobody plays.
     *
     * @param group whose; null for the one that was released first
     * @param index which; -1 for any
     * @param waitMs how long to wait for one
     */
    synchronized ReleasedSample claim(@Nullable String group, int index, long waitMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
        while (true) {
            if (open.size() >= mostSessions) {
                throw RefusedCallException.tooMany(
                        "too_many_sessions",
                        "there are " + open.size()
                                + " sessions open, and no more are allowed (gateway.sessions); complete some");
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
                                + " ms (gateway.claim_wait_ms): admission releases no more than admission.eta allows, "
                                + open.size() + " sessions are open; complete them, or ask again later");
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
     * Takes other samples of a session's group, for further branches of it: all, or none.
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

    /** A sample became a rollout that has no session of its own. */
    synchronized void finished(ReleasedSample sample) {
        unfinished.remove(sample.name(), sample);
        notifyAll();
    }

    /** A claimed sample is played. */
    synchronized void opened(Session session) {
        open.put(session.id().text(), session);
    }

    /** A claimed sample is not played after all. */
    synchronized void giveBack(ReleasedSample sample) {
        boolean isPlayed = open.values().stream().anyMatch(session -> session.sample() == sample);
        if (!isPlayed && unfinished.get(sample.name()) == sample) {
            free.put(sample.name(), sample);
            notifyAll();
        }
    }

    /**
     * The session of a name, which may be over.
     *
     * @throws RefusedCallException if there is none, or it may be there later
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
            throw RefusedCallException.conflict("the session " + text + " is over; open another one");
        }
        SessionId id = SessionId.parse(text)
                .orElseThrow(() -> RefusedCallException.notFound("no gateway gives a session the name '" + text + "'"));
        if (taken.getOrDefault(id.partition(), -1L) <= id.offset()) {
            throw RefusedCallException.notNow(
                    "session_elsewhere",
                    "the session " + text
                            + " is not here: it is being read back from the log, or another gateway has it");
        }
        throw RefusedCallException.notFound("there is no session " + text + "; it is over, or was never opened");
    }

    /** A session is over and committed; its sample is finished, or free again. */
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

    /** All sessions are here that were open before, of the prompts of a partition up to an offset. */
    synchronized void hasTaken(int partition, long behind) {
        taken.put(partition, behind);
    }

    /** A session was ended at a gateway before this one. */
    synchronized void remember(SessionEvent end) {
        endedBefore.put(end.getSessionId(), end);
    }

    /** How a session ended at a gateway before this one; null where nobody knows. */
    synchronized @Nullable SessionEvent endedBefore(String id) {
        return endedBefore.get(id);
    }

    /** Whether it is here and not over. */
    synchronized boolean isOpen(Session session) {
        return open.get(session.id().text()) == session;
    }

    /** Whether its sample is this gateway's to play, and was all the time since the session is here, and is not finished. */
    synchronized boolean isHere(Session session) {
        return unfinished.get(session.sample().name()) == session.sample();
    }

    /** A session is over of which nothing comes. */
    synchronized void drop(Session session) {
        open.remove(session.id().text());
    }

    synchronized List<Session> open() {
        return List.copyOf(open.values());
    }

    /** These prompts belong to another gateway now. */
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

    /** Of what came last. */
    private static final class Remembered<V> extends LinkedHashMap<String, V> {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
            return size() > REMEMBERED_ENDS;
        }
    }
}
