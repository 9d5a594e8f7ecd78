package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A server that is asked by POST, a JSON object each way. The id of a question is also its header {@code Idempotency-Key}. */
final class HttpPartner implements Partner {
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
            if (underWay >= place.concurrency()) {
                waiting.add(call);
                return call.answer;
            }
            underWay++;
        }
        call.attempt();
        return call.answer;
    }

    /** A question has its answer, or none: the next one's turn. */
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
                sent = CLIENT.sendAsync(request(), info -> new BoundedBody(place.answerBytes()));
            } catch (RuntimeException e) {
                fail(String.valueOf(e.getMessage()), e);
                return;
            }
            Future<?> limit = clock.schedule(() -> sent.cancel(true), place.timeoutMs(), TimeUnit.MILLISECONDS);
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
                        "it answered with status " + response.statusCode() + ": " + PartnerJson.shown(response.body()),
                        null);
                return;
            }
            if (response.statusCode() != 200) {
                fail(
                        "it answered with status " + response.statusCode() + ": " + PartnerJson.shown(response.body()),
                        null);
                return;
            }
            ObjectNode read;
            try {
                read = PartnerJson.parsed(response.body(), place.shown());
                AnswerIdentity.check(read, question.body(), place.shown(), false);
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
                again("it has not answered within " + place.timeoutMs() + " ms (timeout_ms)", failure);
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
            if (question.ends() || TimeUnit.NANOSECONDS.toMillis(now - awaySince) >= place.patienceMs()) {
                fail("it could not be reached for " + place.patienceMs() + " ms (patience_ms)", failure);
            } else {
                pause();
            }
        }

        private void again(String why, @Nullable Throwable cause) {
            awaySince = 0;
            if (++attempts >= place.attempts() || question.ends()) {
                fail(why + (attempts == 1 ? "" : ", and was asked " + attempts + " times (attempts)"), cause);
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

    /** The bytes of an answer, up to a limit; what is longer is not read to its end. */
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
