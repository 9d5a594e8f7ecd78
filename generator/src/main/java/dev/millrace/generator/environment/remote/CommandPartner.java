package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import org.jspecify.annotations.Nullable;

/**
 * The user's own command, in as many processes as are needed and allowed: a JSON object a line each way, one question at a time for each
 * process. A process that dies, is late or answers garbage is ended, and another one takes its place.
 *
 * <p>The questions of an episode go to the process that began it. With the process its episodes are over; a question of no episode
 * is asked again.
 */
final class CommandPartner implements Partner {
    private static final long IDLE_MS = 30_000;
    private static final long SHORTEST_PAUSE_MS = 100;
    private static final long LONGEST_PAUSE_MS = 2_000;

    private static final class Asked {
        final Question question;
        final CompletableFuture<ObjectNode> answer = new CompletableFuture<>();
        int attempts;

        Asked(Question question) {
            this.question = question;
        }
    }

    /** Where an episode is played: by a worker's process, of which it may have had several. */
    private record Seat(Worker worker, int processNumber) {}

    private final RemotePlace place;
    private final ScheduledExecutorService clock;
    private final List<Worker> workers = new ArrayList<>();
    private final Deque<Asked> ofAnybody = new ArrayDeque<>();
    private final Map<String, Seat> seats = new HashMap<>();
    private int named;

    CommandPartner(RemotePlace place, ScheduledExecutorService clock) {
        this.place = place;
        this.clock = clock;
        Runtime.getRuntime().addShutdownHook(new Thread(this::killAll, "partner-end"));
    }

    @Override
    public CompletableFuture<ObjectNode> ask(Question question) {
        Asked asked = new Asked(question);
        boolean isLost = false;
        synchronized (this) {
            if (question.episode() == null) {
                ofAnybody.add(asked);
                if (workers.stream().filter(worker -> worker.isIdle).count() < ofAnybody.size()) {
                    another();
                }
            } else if (question.begins()) {
                seatFor(question.episode()).own.add(asked);
            } else {
                Seat seat = seats.get(question.episode());
                isLost = seat == null;
                if (seat != null) {
                    seat.worker().own.add(asked);
                }
            }
            notifyAll();
        }
        if (isLost) {
            asked.answer.completeExceptionally(lost());
        }
        return asked.answer;
    }

    private PartnerException lost() {
        return new PartnerException(
                "the process of " + place.shown() + " that played it has ended, and its episodes with it");
    }

    /** The worker with the fewest episodes, another one where all have some and there may be more. */
    private Worker seatFor(String episode) {
        Worker least = workers.stream()
                .min(Comparator.comparingInt(worker -> worker.episodes))
                .filter(worker -> worker.episodes == 0 || workers.size() >= place.concurrency())
                .orElseGet(this::another);
        least.episodes++;
        seats.put(episode, new Seat(least, least.processNumber));
        return least;
    }

    private Worker another() {
        if (workers.size() >= place.concurrency()) {
            return workers.get(0);
        }
        Worker worker = new Worker(named++);
        workers.add(worker);
        worker.start();
        return worker;
    }

    private synchronized void killAll() {
        workers.forEach(Worker::kill);
    }

    private final class Worker extends Thread {
        final Deque<Asked> own = new ArrayDeque<>();
        int episodes;
        boolean isIdle;
        int processNumber;
        private volatile @Nullable WorkerProcess process;
        private int failures;

        Worker(int number) {
            super("partner-" + number);
            setDaemon(true);
        }

        void kill() {
            WorkerProcess running = process;
            if (running != null) {
                running.kill();
            }
        }

        @Override
        public void run() {
            for (Asked asked = next(); asked != null; asked = next()) {
                serve(asked);
            }
            WorkerProcess last = process;
            if (last != null) {
                last.close();
            }
        }

        /** What to ask next; null where nobody has asked for so long that it ends. */
        private @Nullable Asked next() {
            synchronized (CommandPartner.this) {
                long from = System.nanoTime();
                while (true) {
                    Asked asked = own.isEmpty() ? ofAnybody.poll() : own.poll();
                    if (asked != null) {
                        isIdle = false;
                        return asked;
                    }
                    isIdle = true;
                    long left = IDLE_MS - (System.nanoTime() - from) / 1_000_000;
                    if (left <= 0 && episodes == 0) {
                        workers.remove(this);
                        return null;
                    }
                    try {
                        CommandPartner.this.wait(Math.max(left, 1_000));
                    } catch (InterruptedException e) {
                        workers.remove(this);
                        return null;
                    }
                }
            }
        }

        private void serve(Asked asked) {
            Question question = asked.question;
            if (asked.answer.isDone() && !question.ends()) {
                return; // given up in the meantime
            }
            if (question.episode() != null && !isSeated(question)) {
                asked.answer.completeExceptionally(lost());
                return;
            }
            try {
                WorkerProcess running = process;
                if (running == null) {
                    running = WorkerProcess.start(place.command(), clock);
                    process = running;
                }
                byte[] line =
                        running.exchange(PartnerJson.bytes(question.body()), place.timeoutMs(), place.answerBytes());
                take(asked, line);
            } catch (IOException e) {
                replace(asked, String.valueOf(e.getMessage()), e);
            }
        }

        private void take(Asked asked, byte[] line) {
            ObjectNode answer;
            try {
                answer = PartnerJson.parsed(line, place.shown());
            } catch (PartnerException e) { // garbage, or its own sentence: it goes on, for the next question
                settle(asked.question);
                asked.answer.completeExceptionally(e);
                return;
            }
            try {
                AnswerIdentity.check(answer, asked.question.body(), place.shown(), true);
            } catch (PartnerException e) { // nobody knows what its next answer is about
                end();
                asked.answer.completeExceptionally(e);
                return;
            }
            failures = 0;
            settle(asked.question);
            asked.answer.complete(answer);
        }

        /** The process is of no use any more. A question that it may have acted on is not asked again, any other is. */
        private void replace(Asked asked, String why, Throwable cause) {
            end();
            boolean mayHaveActed = asked.question.episode() != null && !asked.question.begins();
            boolean isLast = ++asked.attempts >= place.attempts();
            if (mayHaveActed || isLast || !pause()) {
                forget(asked.question);
                asked.answer.completeExceptionally(new PartnerException(
                        place.shown() + " gives no answer: " + why
                                + (asked.attempts > 1 ? ", and was asked " + asked.attempts + " times (attempts)" : ""),
                        cause));
                return;
            }
            synchronized (CommandPartner.this) {
                if (asked.question.episode() != null) {
                    seats.put(asked.question.episode(), new Seat(this, processNumber));
                    episodes++;
                    own.addFirst(asked);
                } else {
                    ofAnybody.addFirst(asked);
                }
                CommandPartner.this.notifyAll();
            }
        }

        private boolean pause() {
            try {
                Thread.sleep(Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS << Math.min(failures++, 10)));
                return true;
            } catch (InterruptedException e) {
                interrupt();
                return false;
            }
        }

        private void end() {
            kill();
            synchronized (CommandPartner.this) {
                process = null;
                processNumber++;
                seats.values().removeIf(seat -> seat.worker() == this);
                episodes = 0;
            }
        }

        private boolean isSeated(Question question) {
            synchronized (CommandPartner.this) {
                Seat seat = seats.get(question.episode());
                return seat != null && seat.worker() == this && seat.processNumber() == processNumber;
            }
        }

        private void settle(Question question) {
            if (question.ends()) {
                forget(question);
            }
        }

        private void forget(Question question) {
            synchronized (CommandPartner.this) {
                if (question.episode() != null && seats.remove(question.episode()) != null) {
                    episodes--;
                }
            }
        }
    }
}
