package dev.millrace.gateway;

import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.Session.SessionId;
import dev.millrace.gateway.TurnPlayer.StopTokens;
import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.PromptCheck;
import dev.millrace.generator.sampling.PromptSource;
import dev.millrace.generator.sampling.QuarantineWatch;
import dev.millrace.generator.sampling.RefusedPrompt;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.SessionEventKind;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.run.RunIdentity;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Loop of the role's thread: reads prompts, restores open sessions, ends overdue ones, writes ends, reports serving.
 * Owned by that thread, except {@link #end}.
 */
final class GatewayLoop implements PromptSource.Moves, AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(2); // a turn waits for half of it
    private static final long LOOK_MS = 100;

    private final RunIdentity run;
    private final GeneratorConfig config;
    private final GatewayConfig limits;
    private final SessionTable sessions;
    private final EarlierSessions earlier;
    private final SessionFence fence;
    private final EndWriter writer;
    private final TurnEngine engine;
    private final QuarantineWatch quarantine;
    private final GatewayMeters meters;
    private final Clock clock;
    private final PromptSource prompts;
    private final BlockingQueue<SessionEnding> ends = new LinkedBlockingQueue<>();

    private List<SessionEnding> notWritten = new ArrayList<>();
    private long lookedAtMs;
    private long heartbeatAtMs;
    private long servedVersion = -1;
    private long servedSinceMs;

    GatewayLoop(
            LogConnection connection,
            GeneratorConfig config,
            SessionContext context,
            EndWriter writer,
            PromptCheck check,
            Quarantines quarantines) {
        this.run = connection.run();
        this.config = config;
        this.limits = context.config();
        this.sessions = context.sessions();
        this.earlier = new EarlierSessions(context);
        this.fence = context.fence();
        this.writer = writer;
        this.engine = context.engine();
        this.meters = context.meters();
        this.clock = context.clock();
        this.prompts = new PromptSource(connection, config, check, this);
        this.quarantine = new QuarantineWatch(config.id(), "gateway", quarantines, prompts);
    }

    /** Runs until stopped, then writes pending ends. Open sessions stay on the log. */
    void run(BooleanSupplier stopped) {
        while (!stopped.getAsBoolean()) {
            engine.requireAlive();
            quarantine.look();
            prompts.poll(POLL);
            fence.answer(prompts);
            takePrompts();
            earlier.readIdle(prompts);
            endOverdue();
            write(stopped, false);
        }
        fence.answer(prompts);
        write(() -> false, true);
    }

    void end(SessionEnding ending) {
        ends.add(ending);
    }

    private void takePrompts() {
        while (!prompts.isEmpty() && (sessions.freeSamples() < limits.sessions() || earlier.areThere())) {
            earlier.restore(prompts.takePrompt()).forEach(prompts::finished);
        }
    }

    private void endOverdue() {
        long now = clock.millis();
        if (now - lookedAtMs < LOOK_MS) {
            return;
        }
        lookedAtMs = now;
        for (Session session : sessions.open()) {
            if (session.isOverdue(now, limits)) {
                String error = "the session was not completed: it was opened " + (now - session.openedAtMs())
                        + " ms ago and idle for " + session.idleMs(now)
                        + " ms (gateway.limit_ms=" + limits.limitMs() + ", gateway.idle_ms=" + limits.idleMs() + ")";
                SessionEnding ending = overdue(session, error);
                if (session.end(ending)) {
                    ends.add(ending);
                }
            }
        }
    }

    /** An end without a verdict, on the newest turn's branch. */
    private SessionEnding overdue(Session session, String error) {
        List<PlayedTurn> turns = session.turns();
        if (turns.isEmpty()) {
            return new SessionEnding(session, null, -1, error, List.of(), true, new CompletableFuture<>());
        }
        PlayedTurn last = turns.get(turns.size() - 1);
        Rollout rollout = new SessionRollout(session, last)
                .record(
                        new VerifiedReward(0, Map.of()),
                        FinishReason.ABORTED,
                        error,
                        config.id(),
                        run.policyId(),
                        engine.identity(),
                        clock.millis());
        return new SessionEnding(
                session, rollout, last.record().getTurn(), error, List.of(), true, new CompletableFuture<>());
    }

    private void write(BooleanSupplier stopped, boolean isLast) {
        long now = clock.millis();
        boolean isNew = engine.version() != servedVersion;
        boolean heartbeat = isLast || Pulse.needsServing(monotonicMs() - heartbeatAtMs, config.heartbeatMs(), isNew);
        List<SessionEnding> writing = new ArrayList<>(notWritten);
        List<SessionEnding> fresh = new ArrayList<>();
        ends.drainTo(fresh);
        Set<ReleasedSample> finishing = new HashSet<>();
        notWritten.forEach(end -> finishing.add(end.session().sample()));
        for (SessionEnding end : List.copyOf(fresh)) {
            if (!sessions.isOpen(end.session())) { // its prompt moved to another gateway meanwhile
                fresh.remove(end);
                moved(end);
            } else if (end.rollout() != null
                    && !(sessions.isHere(end.session())
                            && finishing.add(end.session().sample()))) {
                fresh.remove(end);
                finishedByAnother(end);
            }
        }
        for (SessionEnding end : fresh) {
            if (end.rollout() != null) {
                end.session().sample().askedBy().forEach(prompts::finished);
                end.branches().forEach(branch -> branch.sample().askedBy().forEach(prompts::finished));
            }
        }
        writing.addAll(fresh);
        if (writing.isEmpty() && !heartbeat && !prompts.hasRefused()) {
            return;
        }
        List<RefusedPrompt> refused = prompts.takeRefused();
        Set<TopicPartition> named = new HashSet<>();
        writing.forEach(end -> named.add(end.session().sample().prompt().partition()));
        refused.forEach(prompt -> named.add(
                new TopicPartition(prompt.record().topic(), prompt.record().partition())));
        Map<TopicPartition, OffsetAndMetadata> offsets = prompts.takeOffsets(named, writer.nextMark());
        Serving serving = heartbeat || isNew ? serving(now, isLast) : null;
        if (writer.write(writing, refused, serving, offsets, prompts.groupMetadata(), stopped, prompts::isCommitted)) {
            notWritten = new ArrayList<>();
            prompts.committed(offsets);
            refused.forEach(meters::refused);
            for (SessionEnding end : writing) {
                sessions.ended(end.session(), end.rollout() != null);
                end.branches().forEach(branch -> sessions.finished(branch.sample()));
                meters.committed(end);
                end.written().complete(null);
            }
        } else {
            notWritten = writing;
            prompts.requeue(refused, offsets.keySet());
        }
    }

    private static long monotonicMs() {
        return System.nanoTime() / 1_000_000; // the wall clock may be set back
    }

    private @Nullable Serving serving(long now, boolean isLast) {
        long version = engine.version();
        if (version < 0) {
            return null;
        }
        if (version != servedVersion) {
            servedVersion = version;
            servedSinceMs = now;
        }
        heartbeatAtMs = monotonicMs();
        OptionalLong oldest = LongStream.concat(
                        engine.oldestVersion().stream(),
                        sessions.open().stream().flatMapToLong(session -> session.oldestVersion().stream()))
                .min();
        OptionalLong older = engine.olderVersion();
        return new Serving(
                run.runId(),
                run.epoch(),
                config.id(),
                ServerRole.GENERATOR,
                run.policyId(),
                version,
                servedSinceMs,
                now,
                engine.sampledTokens(),
                oldest.isPresent() ? oldest.getAsLong() : null,
                isLast,
                engine.identity(),
                List.of(),
                older.isPresent() ? older.getAsLong() : null);
    }

    @Override
    public void arrived(Set<TopicPartition> partitions) {
        earlier.arrive(partitions);
    }

    @Override
    public void beforeMove() {
        write(() -> false, false);
    }

    @Override
    public void moved(Set<TopicPartition> partitions) {
        sessions.forget(partitions);
        earlier.forget(partitions);
        notWritten.stream()
                .filter(end ->
                        partitions.contains(end.session().sample().prompt().partition()))
                .forEach(GatewayLoop::moved);
        notWritten.removeIf(
                end -> partitions.contains(end.session().sample().prompt().partition()));
    }

    private static void moved(SessionEnding end) {
        end.written()
                .completeExceptionally(RefusedCallException.notNow(
                        "session_elsewhere",
                        "the session " + end.session().id().text()
                                + " belongs to another gateway now; complete it there"));
    }

    private void finishedByAnother(SessionEnding end) {
        sessions.drop(end.session());
        end.branches().forEach(branch -> sessions.giveBack(branch.sample()));
        end.written()
                .completeExceptionally(RefusedCallException.conflict("the sample "
                        + end.session().sample().name() + " was finished by another session; open another one"));
    }

    /** Leaves the group; call after the last write. */
    @Override
    public void close() {
        prompts.close();
    }

    /** Sessions of a partition's previous owner, read from the log with its first prompt. Owned by the role's thread. */
    static final class EarlierSessions {
        private final SessionContext context;
        private final Map<Integer, Map<String, List<SessionEvent>>> readBack = new HashMap<>();
        /** Finished samples by partition and prompt offset. */
        private final Map<Integer, Map<Long, Set<Integer>>> finishedBefore = new HashMap<>();

        private final Set<Integer> known = new HashSet<>();
        /** Assigned partitions with unknown history. */
        private final Set<TopicPartition> arrived = new HashSet<>();

        EarlierSessions(SessionContext context) {
            this.context = context;
        }

        /** True if sessions wait for their prompt. */
        boolean areThere() {
            return !readBack.isEmpty();
        }

        void arrive(Set<TopicPartition> partitions) {
            arrived.addAll(partitions);
        }

        /** Reads ends in partitions without pending prompts, so that retries of ended sessions are answered. */
        void readIdle(PromptSource prompts) {
            for (TopicPartition partition : Set.copyOf(arrived)) {
                if (known.contains(partition.partition())) {
                    arrived.remove(partition);
                    continue;
                }
                prompts.finishedUpTo(partition).ifPresent(behind -> {
                    context.log()
                            .readEnds(partition.partition(), context.clock().millis(), this::hasEnded);
                    known.add(partition.partition());
                    arrived.remove(partition);
                    context.sessions().hasTaken(partition.partition(), behind);
                });
            }
        }

        void forget(Set<TopicPartition> partitions) {
            arrived.removeAll(partitions);
            partitions.forEach(partition -> {
                known.remove(partition.partition());
                readBack.remove(partition.partition());
                finishedBefore.remove(partition.partition());
            });
        }

        /**
         * Restores the open sessions of a prompt.
         *
         * @return requests that are thereby finished, once per sample
         */
        List<AcceptedPrompt> restore(AcceptedPrompt prompt) {
            int partition = prompt.partition().partition();
            Map<String, List<SessionEvent>> before = readBack.get(partition);
            if (before == null && !known.contains(partition)) {
                before = context.log().read(prompt, this::hasEnded);
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
            // of two that play one sample the opening of one was not acknowledged: it receives no calls and times out
            List<List<SessionEvent>> played = here.values().stream()
                    .filter(events ->
                            isOpen(events) && !over.contains(events.get(0).getSampleIndex()))
                    .toList();
            Set<Integer> indexes = played.stream()
                    .map(events -> events.get(0).getSampleIndex())
                    .collect(Collectors.toSet());
            List<AcceptedPrompt> finished = context.sessions().add(prompt, over::contains, indexes::contains);
            played.forEach(events -> restore(prompt, events));
            context.sessions().hasTaken(partition, prompt.offset() + 1);
            return finished;
        }

        /** Notes an ended session or an extra branch. */
        private void hasEnded(SessionEvent end) {
            context.sessions().remember(end);
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

        /** Restores a session left open by its gateway. */
        private void restore(AcceptedPrompt prompt, List<SessionEvent> events) {
            SessionEvent first = events.get(0);
            String text = first.getSessionId();
            Optional<SessionId> id = SessionId.parse(text);
            ReleasedSample sample = context.sessions().unfinished(first.getGroupId() + "/" + first.getSampleIndex());
            if (id.isEmpty() || sample == null || sample.prompt().offset() != prompt.offset()) {
                return; // an older request for the sample is here, too, and continues
            }
            Session session = new Session(id.get(), sample, first.getAgent(), first.getAtMs());
            for (SessionEvent event : events) {
                if (event.getTurn() != null) {
                    SessionTurn turn = event.getTurn();
                    session.add(new PlayedTurn(
                            turn,
                            session.turn(turn.getParentTurn()).orElse(null),
                            GivenAnswer.of(
                                    text,
                                    turn,
                                    context.tokenizer(),
                                    StopTokens.of(sample.prompt(), context.tokenizer()),
                                    context.tools())));
                }
            }
            long lives = events.stream()
                    .filter(event -> event.getKind() == SessionEventKind.OPENED)
                    .count();
            session.restored(context.clock().millis(), lives);
            context.sessions().restore(session);
            session.isTakenUp(context.fence().takeUp(session, context.clock().millis()));
            context.meters().session("restored");
        }
    }
}
