package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A server that speaks OpenEnv: a WebSocket for each episode, messages {@code {"type": ..., "data": ...}}, as openenv-core 0.2 has them.
 *
 * <p>The protocol has no id by which a message would be recognised, so nothing is sent twice: where an answer is lost, so is the
 * episode. Only a connection that could not be made is tried again.
 */
final class OpenEnvPartner implements Partner {
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private static final Map<RemoteEnvironment, OpenEnvPartner> ASKED = new ConcurrentHashMap<>();
    private static final int LONGEST_EPISODE_ID = 255;
    private static final long PAUSE_MS = 500;

    private final RemoteEnvironment settings;
    private final RemotePlace place;
    private final Map<String, Session> sessions = new HashMap<>();
    private final Deque<Session> waiting = new ArrayDeque<>();
    private int open;

    private OpenEnvPartner(RemoteEnvironment settings) {
        this.settings = settings;
        this.place = settings.place();
    }

    static OpenEnvPartner of(RemoteEnvironment settings) {
        return ASKED.computeIfAbsent(settings, OpenEnvPartner::new);
    }

    @Override
    public CompletableFuture<ObjectNode> ask(Question question) {
        String episode = String.valueOf(question.episode());
        if (question.begins()) {
            return begin(episode, question);
        }
        Session session;
        synchronized (this) {
            session = question.ends() ? sessions.remove(episode) : sessions.get(episode);
        }
        if (session == null) {
            return CompletableFuture.failedFuture(new PartnerException("the episode is over at " + place.shown()));
        }
        if (question.ends()) {
            end(session);
            return CompletableFuture.completedFuture(PartnerJson.object());
        }
        int turns = question.body().path("step").asInt(session.turns);
        if (question.body().path("op").asText().equals("state")) { // which says nothing of what the episode is worth
            return CompletableFuture.completedFuture(PartnerJson.object().put("step", turns));
        }
        session.turns = turns;
        ObjectNode step = PartnerJson.object().put("type", "step");
        step.putObject("data")
                .put(settings.actionField(), question.body().path("text").asText());
        return session.exchange(step);
    }

    private CompletableFuture<ObjectNode> begin(String episode, Question question) {
        Session session = new Session(reset(episode, question.body().path("metadata")));
        synchronized (this) {
            sessions.put(episode, session);
            if (open >= place.concurrency()) {
                waiting.add(session);
                return session.begun;
            }
            open++;
            session.isOpen = true;
        }
        session.connect();
        return session.begun;
    }

    /** What the row of data has under {@code reset} goes along. */
    private static ObjectNode reset(String episode, JsonNode metadata) {
        ObjectNode reset = PartnerJson.object().put("type", "reset");
        ObjectNode data = reset.putObject("data");
        if (metadata.path("reset") instanceof ObjectNode given) {
            data.setAll(given);
        }
        data.put("episode_id", episode.substring(0, Math.min(episode.length(), LONGEST_EPISODE_ID)));
        return reset;
    }

    private void end(Session session) {
        session.close();
        Session next;
        synchronized (this) {
            waiting.remove(session);
            if (!session.isOpen) {
                return;
            }
            session.isOpen = false;
            next = waiting.poll();
            if (next == null) {
                open--;
                return;
            }
            next.isOpen = true;
        }
        next.connect();
    }

    /** An observation as an answer in our own words. */
    private ObjectNode translated(ObjectNode message, int turns) {
        String type = message.path("type").asText();
        JsonNode data = message.path("data");
        if (type.equals("error")) {
            throw new PartnerException(
                    place.shown() + " says: " + data.path("message").asText("nothing") + " ("
                            + data.path("code").asText("no code") + ")");
        }
        if (!type.equals("observation") || !data.path("observation").isObject()) {
            throw new PartnerException(place.shown()
                    + " must answer with {\"type\": \"observation\", \"data\": {\"observation\": {...}, ...}}: "
                    + PartnerJson.shown(message.toString().getBytes(StandardCharsets.UTF_8)));
        }
        ObjectNode answer =
                PartnerJson.object().put("step", turns).put("text", text((ObjectNode) data.get("observation")));
        JsonNode reward = data.path("reward");
        if (reward.isBoolean()) {
            answer.put("reward", reward.asBoolean() ? 1 : 0);
        } else if (PartnerJson.isThere(reward)) {
            answer.set("reward", reward);
        }
        if (PartnerJson.isThere(data.path("done"))) {
            answer.set("done", data.get("done"));
        }
        return answer;
    }

    private String text(ObjectNode observation) {
        if (settings.observationField().isEmpty()) {
            return observation.toString();
        }
        JsonNode field = observation.path(settings.observationField());
        if (field.isMissingNode()) {
            throw new PartnerException(place.shown() + " gave an observation without " + settings.observationField()
                    + " (observation_field): "
                    + PartnerJson.shown(observation.toString().getBytes(StandardCharsets.UTF_8)));
        }
        return field.isTextual() ? field.asText() : field.toString();
    }

    /** The connection of one episode. */
    private final class Session implements WebSocket.Listener {
        final CompletableFuture<ObjectNode> begun = new CompletableFuture<>();
        private final ObjectNode reset;
        private final StringBuilder message = new StringBuilder();
        boolean isOpen; // guarded by the partner: it counts
        volatile int turns;
        private long awaySince;
        private @Nullable WebSocket socket;
        private @Nullable CompletableFuture<ObjectNode> pending;
        private boolean isOver;

        Session(ObjectNode reset) {
            this.reset = reset;
        }

        void connect() {
            WebSocket.Builder builder =
                    CLIENT.newWebSocketBuilder().connectTimeout(Duration.ofMillis(place.timeoutMs()));
            try {
                String authorization = place.authorization(System.getenv());
                if (!authorization.isEmpty()) {
                    builder.header("Authorization", authorization);
                }
                builder.buildAsync(URI.create(place.url()), this).whenComplete((made, failure) -> {
                    if (failure == null) {
                        connected(made);
                    } else {
                        away(
                                failure instanceof CompletionException && failure.getCause() != null
                                        ? failure.getCause()
                                        : failure);
                    }
                });
            } catch (RuntimeException e) {
                begun.completeExceptionally(new PartnerException(place.shown() + ": " + e.getMessage(), e));
            }
        }

        private void connected(WebSocket made) {
            synchronized (this) {
                if (isOver) {
                    made.abort();
                    return;
                }
                socket = made;
            }
            exchange(reset).whenComplete((answer, failure) -> {
                if (failure == null) {
                    begun.complete(answer);
                } else {
                    begun.completeExceptionally(
                            failure instanceof CompletionException && failure.getCause() != null
                                    ? failure.getCause()
                                    : failure);
                }
            });
        }

        private void away(Throwable failure) {
            long now = System.nanoTime();
            awaySince = awaySince == 0 ? now : awaySince;
            boolean mayComeBack = failure instanceof ConnectException
                    && TimeUnit.NANOSECONDS.toMillis(now - awaySince) < place.patienceMs();
            if (mayComeBack && !isOver()) {
                Partners.sharedClock().schedule(this::connect, PAUSE_MS, TimeUnit.MILLISECONDS);
            } else {
                begun.completeExceptionally(new PartnerException(
                        place.shown() + " could not be connected to"
                                + (failure instanceof ConnectException
                                        ? " for " + place.patienceMs() + " ms (patience_ms)"
                                        : ": " + failure.getMessage()),
                        failure));
            }
        }

        private synchronized boolean isOver() {
            return isOver;
        }

        CompletableFuture<ObjectNode> exchange(ObjectNode question) {
            CompletableFuture<ObjectNode> answer = new CompletableFuture<>();
            WebSocket to;
            synchronized (this) {
                to = socket;
                if (isOver || to == null) {
                    return CompletableFuture.failedFuture(new PartnerException(
                            "the connection to " + place.shown() + " is gone, and the episode with it"));
                }
                pending = answer;
            }
            Future<?> limit = Partners.sharedClock()
                    .schedule(
                            () -> lost("it has not answered within " + place.timeoutMs() + " ms (timeout_ms)", null),
                            place.timeoutMs(),
                            TimeUnit.MILLISECONDS);
            to.sendText(question.toString(), true).whenComplete((sent, failure) -> {
                if (failure != null) {
                    lost("the connection broke: " + failure, failure);
                }
            });
            int asked = turns;
            return answer.whenComplete((said, failure) -> limit.cancel(false))
                    .thenApply(said -> translated(said, asked));
        }

        @Override
        public @Nullable CompletionStage<?> onText(WebSocket from, CharSequence data, boolean last) {
            if (message.length() + data.length() > place.answerBytes()) { // the socket calls one after the other
                lost("its answer is longer than " + place.answerBytes() + " bytes (answer_bytes)", null);
                return null;
            }
            message.append(data);
            if (last) {
                byte[] whole = message.toString().getBytes(StandardCharsets.UTF_8);
                message.setLength(0);
                answered(whole);
            }
            from.request(1);
            return null;
        }

        private void answered(byte[] whole) {
            CompletableFuture<ObjectNode> waited;
            synchronized (this) {
                waited = pending;
                pending = null;
            }
            if (waited == null) {
                lost("it said something that nobody asked for", null);
                return;
            }
            try {
                waited.complete(PartnerJson.parsed(whole, place.shown()));
            } catch (PartnerException e) {
                waited.completeExceptionally(e);
            }
        }

        @Override
        public @Nullable CompletionStage<?> onClose(WebSocket from, int status, String reason) {
            lost("it closed the connection (" + status + (reason.isEmpty() ? "" : ": " + reason) + ")", null);
            return null;
        }

        @Override
        public void onError(WebSocket from, Throwable failure) {
            lost("the connection broke: " + failure, failure);
        }

        private void lost(String why, @Nullable Throwable cause) {
            CompletableFuture<ObjectNode> waited;
            WebSocket of;
            synchronized (this) {
                isOver = true;
                waited = pending;
                pending = null;
                of = socket;
            }
            if (of != null) {
                of.abort();
            }
            if (waited != null) {
                String sentence = place.shown() + " gives no answer: " + why;
                waited.completeExceptionally(
                        cause == null ? new PartnerException(sentence) : new PartnerException(sentence, cause));
            }
        }

        void close() {
            WebSocket of;
            synchronized (this) {
                of = isOver ? null : socket;
                isOver = true;
            }
            if (of != null) {
                of.sendText("{\"type\": \"close\"}", true)
                        .thenCompose(told -> told.sendClose(WebSocket.NORMAL_CLOSURE, ""))
                        .whenComplete((told, failure) -> Partners.sharedClock()
                                .schedule(of::abort, 1, TimeUnit.SECONDS)); // whoever does not answer the close
            }
        }
    }
}
