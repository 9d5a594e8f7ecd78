package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The remote rewards and environments of this process, one client for each place, with a shared timer for timeouts. */
final class Partners {
    private static final Map<RemotePlace, Partner> ASKED = new ConcurrentHashMap<>();
    private static final ScheduledThreadPoolExecutor CLOCK = clock();

    private Partners() {}

    static Partner of(RemotePlace place) {
        return ASKED.computeIfAbsent(
                place,
                asked -> asked.url().isEmpty() ? new CommandPartner(asked, CLOCK) : new HttpPartner(asked, CLOCK));
    }

    static ScheduledExecutorService sharedClock() {
        return CLOCK;
    }

    private static ScheduledThreadPoolExecutor clock() {
        ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = Executors.defaultThreadFactory().newThread(task);
            thread.setName("partner-limits");
            thread.setDaemon(true);
            return thread;
        });
        clock.setRemoveOnCancelPolicy(true);
        return clock;
    }

    /**
     * Refuses the answer to another question, by {@code id} or {@code rollout_id}.
     *
     * @param isNeeded whether one of the two must be there
     * @throws PartnerException with both names
     */
    private static void requireAnswerTo(ObjectNode answer, ObjectNode question, String who, boolean isNeeded) {
        boolean namesId = isSame("id", answer, question, who);
        boolean namesRollout = isSame("rollout_id", answer, question, who);
        if (isNeeded && !namesId && !namesRollout) {
            throw new PartnerException(
                    who + " answered without the request's id, so it may have answered another one; put \"id\": "
                            + question.path("id") + " into the answer");
        }
    }

    private static boolean isSame(String key, ObjectNode answer, ObjectNode question, String who) {
        JsonNode said = answer.path(key);
        if (!PartnerJson.isThere(said)) {
            return false;
        }
        if (!said.equals(question.path(key))) {
            throw new PartnerException(
                    who + " answered another request: " + key + " is " + said + ", asked was " + question.path(key));
        }
        return true;
    }

    /** HTTP client: POST, one JSON object each way, the id of the request also as header {@code Idempotency-Key}. */
    static final class HttpPartner implements Partner {
        private static final HttpClient CLIENT = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(Duration.ofSeconds(5))
                .followRedirects(HttpClient.Redirect.NEVER)
                .build();
        private static final Set<Integer> ASK_AGAIN = Set.of(408, 425, 429, 500, 502, 503, 504);
        private static final long SHORTEST_PAUSE_MS = 100;
        private static final long LONGEST_PAUSE_MS = 2_000;

        private final RemotePlace place;
        private final ScheduledExecutorService clock;
        private final Deque<Call> waiting = new ArrayDeque<>();
        private int underWay;

        HttpPartner(RemotePlace place, ScheduledExecutorService clock) {
            this.place = place;
            this.clock = clock;
        }

        @Override
        public CompletableFuture<ObjectNode> ask(Question question) {
            Call call = new Call(question);
            synchronized (this) {
                if (underWay >= place.limits().concurrency()) {
                    waiting.add(call);
                    return call.answer;
                }
                underWay++;
            }
            call.attempt();
            return call.answer;
        }

        /** Starts the next waiting call after one has ended. */
        private void next() {
            Call call;
            synchronized (this) {
                do {
                    call = waiting.poll();
                } while (call != null && call.answer.isDone());
                if (call == null) {
                    underWay--;
                    return;
                }
            }
            call.attempt();
        }

        private final class Call {
            private final Question question;
            private final byte[] body;
            private final CompletableFuture<ObjectNode> answer = new CompletableFuture<>();
            private int attempts;
            private long awaySince;
            private int pauses;

            Call(Question question) {
                this.question = question;
                this.body = PartnerJson.bytes(question.body());
            }

            void attempt() {
                if (answer.isDone()) { // given up in the meantime
                    next();
                    return;
                }
                CompletableFuture<HttpResponse<byte[]>> sent;
                try {
                    sent = CLIENT.sendAsync(
                            request(), info -> new BoundedBody(place.limits().answerBytes()));
                } catch (RuntimeException e) {
                    fail(String.valueOf(e.getMessage()), e);
                    return;
                }
                Future<?> limit =
                        clock.schedule(() -> sent.cancel(true), place.limits().timeoutMs(), TimeUnit.MILLISECONDS);
                sent.whenComplete((response, failure) -> {
                    limit.cancel(false);
                    if (failure == null) {
                        take(response);
                    } else {
                        take(
                                failure instanceof CompletionException && failure.getCause() != null
                                        ? failure.getCause()
                                        : failure);
                    }
                });
            }

            private HttpRequest request() {
                HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(place.url()))
                        .header("Content-Type", "application/json")
                        .header("Idempotency-Key", question.id())
                        .POST(BodyPublishers.ofByteArray(body));
                String authorization = place.authorization(System.getenv());
                if (!authorization.isEmpty()) {
                    request.header("Authorization", authorization);
                }
                return request.build();
            }

            private void take(HttpResponse<byte[]> response) {
                if (ASK_AGAIN.contains(response.statusCode())) {
                    again(
                            "it answered with status " + response.statusCode() + ": "
                                    + PartnerJson.shown(response.body()),
                            null);
                    return;
                }
                if (response.statusCode() != 200) {
                    fail(
                            "it answered with status " + response.statusCode() + ": "
                                    + PartnerJson.shown(response.body()),
                            null);
                    return;
                }
                ObjectNode read;
                try {
                    read = PartnerJson.parsed(response.body(), place.shown());
                    requireAnswerTo(read, question.body(), place.shown(), false);
                } catch (PartnerException e) {
                    over(() -> answer.completeExceptionally(e));
                    return;
                }
                over(() -> answer.complete(read));
            }

            private void take(Throwable failure) {
                if (failure instanceof ConnectException || failure instanceof HttpConnectTimeoutException) {
                    away(failure);
                } else if (failure instanceof BoundedBody.TooLongException) {
                    fail(String.valueOf(failure.getMessage()), failure);
                } else if (failure instanceof java.util.concurrent.CancellationException) {
                    again("it has not answered within " + place.limits().timeoutMs() + " ms (timeout_ms)", failure);
                } else if (failure instanceof IOException) {
                    again("the connection broke: " + failure, failure);
                } else {
                    fail(failure.toString(), failure);
                }
            }

            private void away(Throwable failure) {
                long now = System.nanoTime();
                if (awaySince == 0) {
                    awaySince = now;
                }
                if (question.ends()
                        || TimeUnit.NANOSECONDS.toMillis(now - awaySince)
                                >= place.limits().patienceMs()) {
                    fail("it could not be reached for " + place.limits().patienceMs() + " ms (patience_ms)", failure);
                } else {
                    pause();
                }
            }

            private void again(String why, @Nullable Throwable cause) {
                awaySince = 0;
                if (++attempts >= place.limits().attempts() || question.ends()) {
                    fail(why + (attempts == 1 ? "" : ", after " + attempts + " attempts (attempts)"), cause);
                } else {
                    pause();
                }
            }

            private void pause() {
                long pause = Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS << Math.min(pauses++, 10));
                clock.schedule(this::attempt, pause, TimeUnit.MILLISECONDS);
            }

            private void fail(String why, @Nullable Throwable cause) {
                String sentence = place.shown() + " gives no answer: " + why;
                PartnerException failure =
                        cause == null ? new PartnerException(sentence) : new PartnerException(sentence, cause);
                over(() -> answer.completeExceptionally(failure));
            }

            private void over(Runnable complete) {
                complete.run();
                next();
            }
        }

        /** Body of an answer up to a limit; a longer one is not read to its end. */
        static final class BoundedBody implements BodySubscriber<byte[]> {

            /** The answer is longer than it may be. */
            static final class TooLongException extends IOException {
                private static final long serialVersionUID = 1;

                TooLongException(int limit) {
                    super("its answer is longer than " + limit + " bytes (answer_bytes)");
                }
            }

            private final int limit;
            private final ByteArrayOutputStream read = new ByteArrayOutputStream();
            private final CompletableFuture<byte[]> body = new CompletableFuture<>();
            private Flow.@Nullable Subscription subscription;

            BoundedBody(int limit) {
                this.limit = limit;
            }

            @Override
            public CompletionStage<byte[]> getBody() {
                return body;
            }

            @Override
            public void onSubscribe(Flow.Subscription begun) {
                subscription = begun;
                begun.request(Long.MAX_VALUE);
            }

            @Override
            public void onNext(List<ByteBuffer> buffers) {
                for (ByteBuffer buffer : buffers) {
                    if (body.isDone()) {
                        return;
                    }
                    if (read.size() + buffer.remaining() > limit) {
                        if (subscription != null) {
                            subscription.cancel();
                        }
                        body.completeExceptionally(new TooLongException(limit));
                        return;
                    }
                    byte[] bytes = new byte[buffer.remaining()];
                    buffer.get(bytes);
                    read.writeBytes(bytes);
                }
            }

            @Override
            public void onError(Throwable failure) {
                body.completeExceptionally(failure);
            }

            @Override
            public void onComplete() {
                body.complete(read.toByteArray());
            }
        }
    }

    /**
     * The user's command in up to {@code concurrency} processes; JSON lines, one request at a time each. Replaces a process
     * that dies, is late or sends garbage.
     *
     * <p>Requests of an episode go to the process that began it and fail with it; other requests are retried.
     */
    static final class CommandPartner implements Partner {
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

        /** The place of an episode: a worker's process, possibly restarted several times. */
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

        /** The worker with the fewest episodes; a new one if all have some and {@code concurrency} allows it. */
        private Worker seatFor(String episode) {
            Worker least = workers.stream()
                    .min(Comparator.comparingInt(worker -> worker.episodes))
                    .filter(worker -> worker.episodes == 0
                            || workers.size() >= place.limits().concurrency())
                    .orElseGet(this::another);
            least.episodes++;
            seats.put(episode, new Seat(least, least.processNumber));
            return least;
        }

        private Worker another() {
            if (workers.size() >= place.limits().concurrency()) {
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

            /** The next request; null after {@link #IDLE_MS} without a request or episode. */
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
                    byte[] line = running.exchange(
                            PartnerJson.bytes(question.body()),
                            place.limits().timeoutMs(),
                            place.limits().answerBytes());
                    take(asked, line);
                } catch (IOException e) {
                    replace(asked, String.valueOf(e.getMessage()), e);
                }
            }

            private void take(Asked asked, byte[] line) {
                ObjectNode answer;
                try {
                    answer = PartnerJson.parsed(line, place.shown());
                } catch (PartnerException e) { // garbage, or its own sentence: it continues, for the next question
                    settle(asked.question);
                    asked.answer.completeExceptionally(e);
                    return;
                }
                try {
                    requireAnswerTo(answer, asked.question.body(), place.shown(), true);
                } catch (PartnerException e) { // nobody knows what its next answer is about
                    end();
                    asked.answer.completeExceptionally(e);
                    return;
                }
                failures = 0;
                settle(asked.question);
                asked.answer.complete(answer);
            }

            /** Replaces the process. Retries the request, unless the process may have acted on it. */
            private void replace(Asked asked, String why, Throwable cause) {
                end();
                boolean mayHaveActed = asked.question.episode() != null && !asked.question.begins();
                boolean isLast = ++asked.attempts >= place.limits().attempts();
                if (mayHaveActed || isLast || !pause()) {
                    forget(asked.question);
                    asked.answer.completeExceptionally(new PartnerException(
                            place.shown() + " gives no answer: " + why
                                    + (asked.attempts > 1 ? ", after " + asked.attempts + " attempts (attempts)" : ""),
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

        /**
         * One process of the user's command: a line in, a line out; its error stream is logged. Confined to one
         * thread; unusable after an {@link IOException}.
         */
        static final class WorkerProcess {
            private static final Logger LOG = LoggerFactory.getLogger(WorkerProcess.class);
            private static final int LONGEST_LOG_LINE = 2_000;
            private static final long END_LIMIT_MS = 2_000;

            private final String command;
            private final ScheduledExecutorService clock;
            private final Process process;
            private final InputStream answers;
            private final Thread listener;
            private volatile String lastComplaint = "";

            private WorkerProcess(String command, ScheduledExecutorService clock, Process process) {
                this.command = command;
                this.clock = clock;
                this.process = process;
                this.answers = new BufferedInputStream(process.getInputStream());
                this.listener = new Thread(this::listen, "partner-errors-" + process.pid());
                listener.setDaemon(true);
                listener.start();
            }

            static WorkerProcess start(String command, ScheduledExecutorService clock) throws IOException {
                Process process = new ProcessBuilder("/bin/sh", "-c", command).start();
                return new WorkerProcess(command, clock, process);
            }

            private void listen() {
                try (InputStream errors = new BufferedInputStream(process.getErrorStream())) {
                    ByteArrayOutputStream line = new ByteArrayOutputStream();
                    for (int b = errors.read(); b >= 0; b = errors.read()) {
                        if (b != '\n') {
                            if (line.size() < LONGEST_LOG_LINE) {
                                line.write(b);
                            }
                            continue;
                        }
                        tell(line);
                        line.reset();
                    }
                    tell(line);
                } catch (IOException e) {
                    // it has ended
                }
            }

            private void tell(ByteArrayOutputStream line) {
                String text = line.toString(StandardCharsets.UTF_8).strip();
                if (!text.isEmpty()) {
                    lastComplaint = text;
                    LOG.info("'{}' ({}): {}", command, process.pid(), text);
                }
            }

            /**
             * Sends a question and waits for the answer.
             *
             * @throws IOException with a clause that says why there is no answer; the process is ended
             */
            byte[] exchange(byte[] question, int limitMs, int longest) throws IOException {
                AtomicBoolean isDecided = new AtomicBoolean(); // by the answer or by the limit, whichever is first
                Future<?> limit = clock.schedule(
                        () -> {
                            if (isDecided.compareAndSet(false, true)) {
                                kill();
                            }
                        },
                        limitMs,
                        TimeUnit.MILLISECONDS);
                boolean isOverdue = false;
                try {
                    if (answers.available() > 0) {
                        throw new IOException("it wrote a line without a request");
                    }
                    write(question);
                    byte[] answer = line(longest);
                    isOverdue = !isDecided.compareAndSet(false, true);
                    if (isOverdue) {
                        throw new IOException("it answered after its limit");
                    }
                    return answer;
                } catch (IOException e) {
                    isOverdue |= !isDecided.compareAndSet(false, true);
                    kill();
                    throw isOverdue
                            ? new IOException(
                                    "it has not answered within " + limitMs
                                            + " ms (timeout_ms); it must write one line for each that it reads, and flush it",
                                    e)
                            : e;
                } finally {
                    limit.cancel(false);
                }
            }

            private void write(byte[] question) throws IOException {
                OutputStream questions = process.getOutputStream();
                try {
                    questions.write(question);
                    questions.write('\n');
                    questions.flush();
                } catch (IOException e) {
                    throw new IOException(end(), e);
                }
            }

            private byte[] line(int longest) throws IOException {
                ByteArrayOutputStream line = new ByteArrayOutputStream();
                while (true) {
                    int b = answers.read();
                    if (b < 0) {
                        throw new IOException(end());
                    }
                    if (b == '\n') {
                        if (!line.toString(StandardCharsets.UTF_8).isBlank()) {
                            return line.toByteArray();
                        }
                        line.reset();
                        continue;
                    }
                    if (line.size() >= longest) {
                        throw new IOException("its answer is longer than " + longest + " bytes (answer_bytes)");
                    }
                    line.write(b);
                }
            }

            private String end() {
                try {
                    String status = process.waitFor(END_LIMIT_MS, TimeUnit.MILLISECONDS)
                            ? "it ended with status " + process.exitValue()
                            : "it closed its output";
                    listener.join(END_LIMIT_MS); // what it complained of last
                    return lastComplaint.isEmpty() ? status : status + "; its last error output: " + lastComplaint;
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return "it ended";
                }
            }

            /** Closes its input, and kills it if it does not end. */
            void close() {
                try {
                    process.getOutputStream().close();
                    if (process.waitFor(END_LIMIT_MS, TimeUnit.MILLISECONDS)) {
                        return;
                    }
                } catch (IOException e) {
                    // it has ended already, or is ended now
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                kill();
            }

            /** Kills the process first, then its children, so that it does not continue after one of them. */
            void kill() {
                List<ProcessHandle> started = process.descendants().toList();
                process.destroyForcibly();
                started.forEach(ProcessHandle::destroyForcibly);
            }
        }
    }
}
