package dev.millrace.generator.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.generator.sampling.PromptSource;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.SessionEventKind;
import dev.millrace.schemas.SessionTurn;
import java.time.Clock;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * What sessions of a partition's prompts have been through with whoever had the partition before: read from the log with its first prompt, and gone
 * on with as the prompts come.
 *
 * <p>Owned by the role's thread.
 */
final class EarlierSessions {
    private final SessionTable sessions;
    private final SessionLog log;
    private final SessionFence fence;
    private final Tokenizer tokenizer;
    private final ToolFormat tools;
    private final GatewayMeters meters;
    private final Clock clock;
    private final Map<Integer, Map<String, List<SessionEvent>>> readBack = new HashMap<>();
    /** Samples that were finished before, by partition and offset of the prompt that released them. */
    private final Map<Integer, Map<Long, Set<Integer>>> finishedBefore = new HashMap<>();
    /** Partitions of which what sessions have been through is read. */
    private final Set<Integer> known = new HashSet<>();
    /** Those that came and of which it is not. */
    private final Set<TopicPartition> arrived = new HashSet<>();

    EarlierSessions(
            SessionTable sessions,
            SessionLog log,
            SessionFence fence,
            Tokenizer tokenizer,
            ToolFormat tools,
            GatewayMeters meters,
            Clock clock) {
        this.sessions = sessions;
        this.log = log;
        this.fence = fence;
        this.tokenizer = tokenizer;
        this.tools = tools;
        this.meters = meters;
        this.clock = clock;
    }

    /** Whether some wait for their prompt. */
    boolean areThere() {
        return !readBack.isEmpty();
    }

    /** The partitions are this gateway's. */
    void arrive(Set<TopicPartition> partitions) {
        arrived.addAll(partitions);
    }

    /**
     * Learns of partitions in which no prompt waits that their sessions are over: an agent that asks one of them again, since nobody
     * answered it, hears so, and does not ask for as long as no prompt comes.
     */
    void readIdle(PromptSource prompts) {
        for (TopicPartition partition : Set.copyOf(arrived)) {
            if (known.contains(partition.partition())) {
                arrived.remove(partition);
                continue;
            }
            prompts.finishedUpTo(partition).ifPresent(behind -> {
                log.readEnds(partition.partition(), clock.millis(), this::hasEnded);
                known.add(partition.partition());
                arrived.remove(partition);
                sessions.hasTaken(partition.partition(), behind);
            });
        }
    }

    /** The partitions are somebody else's. */
    void forget(Set<TopicPartition> partitions) {
        arrived.removeAll(partitions);
        partitions.forEach(partition -> {
            known.remove(partition.partition());
            readBack.remove(partition.partition());
            finishedBefore.remove(partition.partition());
        });
    }

    /**
     * Takes a prompt up, with the sessions of its samples that are not over.
     *
     * @return requests of a sample each that are finished with that, this prompt once for each
     */
    List<AcceptedPrompt> goOn(AcceptedPrompt prompt) {
        int partition = prompt.partition().partition();
        Map<String, List<SessionEvent>> before = readBack.get(partition);
        if (before == null && !known.contains(partition)) {
            before = log.read(prompt, this::hasEnded);
            known.add(partition);
            if (!before.isEmpty()) {
                readBack.put(partition, before);
            }
        }
        Map<String, List<SessionEvent>> here = new LinkedHashMap<>();
        Set<Integer> over =
                finishedBefore.getOrDefault(partition, new HashMap<>()).getOrDefault(prompt.offset(), Set.of());
        if (before != null) {
            before.forEach((id, events) -> {
                if (events.get(0).getPromptSource().getOffset() == prompt.offset()) {
                    here.put(id, events);
                }
            });
            before.keySet().removeAll(here.keySet());
            if (before.isEmpty()) {
                readBack.remove(partition);
            }
        }
        // of two that play one sample the opening of one was not acknowledged: nobody asks it anything, and it ends
        // after its time
        List<List<SessionEvent>> played = here.values().stream()
                .filter(events -> isOpen(events) && !over.contains(events.get(0).getSampleIndex()))
                .toList();
        Set<Integer> indexes =
                played.stream().map(events -> events.get(0).getSampleIndex()).collect(Collectors.toSet());
        List<AcceptedPrompt> finished = sessions.add(prompt, over::contains, indexes::contains);
        played.forEach(events -> restore(prompt, events));
        sessions.hasTaken(partition, prompt.offset() + 1);
        return finished;
    }

    /** A session was ended before, or a further branch of it became a rollout. */
    private void hasEnded(SessionEvent end) {
        sessions.remember(end);
        finishedBefore
                .computeIfAbsent(end.getPromptSource().getPartition(), partition -> new HashMap<>())
                .computeIfAbsent(end.getPromptSource().getOffset(), offset -> new HashSet<>())
                .add(end.getSampleIndex());
    }

    private static boolean isOpen(List<SessionEvent> events) {
        return SessionId.parse(events.get(0).getSessionId()).isPresent()
                && events.stream()
                        .noneMatch(event -> event.getKind() == SessionEventKind.ENDED
                                || event.getKind() == SessionEventKind.RETURNED);
    }

    /** A session that was open when its gateway ended. */
    private void restore(AcceptedPrompt prompt, List<SessionEvent> events) {
        SessionEvent first = events.get(0);
        String text = first.getSessionId();
        Optional<SessionId> id = SessionId.parse(text);
        ReleasedSample sample = sessions.unfinished(first.getGroupId() + "/" + first.getSampleIndex());
        if (id.isEmpty() || sample == null || sample.prompt().offset() != prompt.offset()) {
            return; // an older request for the sample is here, too, and goes on
        }
        Session session = new Session(id.get(), sample, first.getAgent(), first.getAtMs());
        for (SessionEvent event : events) {
            if (event.getTurn() != null) {
                SessionTurn turn = event.getTurn();
                session.add(new PlayedTurn(
                        turn,
                        session.turn(turn.getParentTurn()).orElse(null),
                        GivenAnswer.of(text, turn, tokenizer, StopTokens.of(sample.prompt(), tokenizer), tools)));
            }
        }
        long lives = events.stream()
                .filter(event -> event.getKind() == SessionEventKind.OPENED)
                .count();
        session.restored(clock.millis(), lives);
        sessions.restore(session);
        session.isTakenUp(fence.takeUp(session, clock.millis()));
        meters.session("restored");
    }
}
