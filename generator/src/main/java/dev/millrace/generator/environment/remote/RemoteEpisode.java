package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.StopRule;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One response played by a remote environment: {@code reset} before the first token, {@code step} after each turn of
 * the policy, {@code state} if the token limit cut the response, {@code close} at the end.
 *
 * <p>Unlike in other episodes the reward is not a function of the tokens: the environment gives it turn by turn.
 */
final class RemoteEpisode implements Episode {
    private static final int PROTOCOL = 1;

    private final RemoteEnvironment settings;
    private final Tokenizer tokenizer;
    private final StopRule turnEnd;
    private final EpisodeStart start;
    private final String id;
    private final List<Integer> turnEnds = new ArrayList<>(); // response positions behind which a turn was told
    private final List<Double> turnRewards = new ArrayList<>();
    private final Map<String, Double> components = new TreeMap<>();
    private @Nullable CompletableFuture<EpisodeAnswer> asked;
    private boolean isBegun;
    private boolean isDone;
    private boolean isClosed;
    private int toldUntil; // response position up to which it knows what the policy wrote
    private double sum;

    RemoteEpisode(RemoteEnvironment settings, Tokenizer tokenizer, StopRule turnEnd, EpisodeStart start) {
        this.settings = settings;
        this.tokenizer = tokenizer;
        this.turnEnd = turnEnd;
        this.start = start;
        // a rollout that is sampled again is another episode
        this.id = start.rolloutId() + "#" + UUID.randomUUID().toString().substring(0, 13);
    }

    @Override
    public boolean opens() {
        return true;
    }

    @Override
    public StepResult afterToken(Transcript response) {
        CompletableFuture<EpisodeAnswer> waiting = asked;
        if (waiting == null) {
            if (!isBegun) {
                isBegun = true;
                asked = ask("reset", reset(), 0);
            } else if (turnEnd.endsAt(new Turn(response, toldUntil))) {
                asked = ask("step", step(response), turnEnds.size());
            } else {
                return StepResult.GO_ON;
            }
            return StepResult.LATER;
        }
        if (!waiting.isDone()) {
            return StepResult.LATER;
        }
        asked = null;
        return take(answer(waiting), response.length());
    }

    private static EpisodeAnswer answer(CompletableFuture<EpisodeAnswer> asked) {
        try {
            return asked.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
        }
    }

    private StepResult take(EpisodeAnswer answer, int length) {
        if (length > 0) {
            turnRewards.add(answer.reward());
        }
        sum += answer.reward();
        answer.components().forEach((name, value) -> components.merge(name, value, Double::sum));
        int[] given = answer.tokens();
        int[] tokens = given != null
                ? given
                : answer.text().isEmpty() ? new int[0] : tokenizer.encodeRendered(settings.framed(answer.text()));
        toldUntil = length + tokens.length;
        isDone = answer.done();
        return isDone ? StepResult.insertAndEnd(tokens) : StepResult.insert(tokens);
    }

    private ObjectNode reset() {
        ObjectNode body = PartnerJson.object().put("prompt", tokenizer.decode(start.promptTokens()));
        add(body.putArray("prompt_tokens"), start.promptTokens());
        body.set("metadata", PartnerJson.metadata(start.state()));
        return body;
    }

    private ObjectNode step(Transcript response) {
        int[] own = new int[response.length() - toldUntil];
        for (int t = 0; t < own.length; t++) {
            own[t] = response.token(toldUntil + t);
        }
        turnEnds.add(response.length());
        ObjectNode body = PartnerJson.object().put("step", turnEnds.size()).put("text", tokenizer.text(own));
        add(body.putArray("tokens"), own);
        return body;
    }

    private static void add(ArrayNode list, int[] tokens) {
        Arrays.stream(tokens).forEach(list::add);
    }

    private CompletableFuture<EpisodeAnswer> ask(String what, ObjectNode said, int turns) {
        RemotePlace place = settings.place();
        return partner()
                .ask(question(what, said))
                .thenApply(answer -> EpisodeAnswer.read(answer, turns, place.shown()));
    }

    private Question question(String what, ObjectNode said) {
        String questionId = id + "/" + (what.equals("step") ? String.valueOf(turnEnds.size()) : what);
        ObjectNode body = PartnerJson.object()
                .put("protocol", PROTOCOL)
                .put("op", what)
                .put("id", questionId)
                .put("episode", id)
                .put("rollout_id", start.rolloutId())
                .put("environment", settings.name());
        body.setAll(said);
        return new Question(questionId, body, id, what.equals("reset"), what.equals("close"));
    }

    private Partner partner() {
        return settings.protocol() == EnvironmentProtocol.OPENENV
                ? OpenEnvPartner.of(settings)
                : Partners.of(settings.place());
    }

    @Override
    public VerifiedReward verify(Transcript response) {
        if (!isBegun) {
            throw new IllegalStateException(
                    "the environment " + settings.name() + " did not play this response, so it cannot reward it");
        }
        return new VerifiedReward(sum, components).withTurnRewards(perTurn(response));
    }

    /** Requests the state, and with it the reward, of a response that the token limit cut. */
    @Override
    public Optional<CompletionStage<VerifiedReward>> verifyLater(Transcript response) {
        if (!isBegun) {
            return Optional.empty();
        }
        if (isDone || asked != null) {
            VerifiedReward known = verify(response);
            close();
            return Optional.of(CompletableFuture.completedFuture(known));
        }
        return Optional.of(ask("state", PartnerJson.object(), turnEnds.size()).handle((state, failure) -> {
            close();
            if (failure != null) {
                throw failure instanceof CompletionException wrapped ? wrapped : new CompletionException(failure);
            }
            VerifiedReward known = verify(response);
            return state.hasReward()
                    ? new VerifiedReward(state.reward(), state.components(), known.turnRewards(), known.tokenRewards())
                    : known;
        }));
    }

    /** Rewards by turn; empty without a step. */
    private List<Double> perTurn(Transcript response) {
        List<Double> rewards = new ArrayList<>();
        int told = 0;
        for (int t = 0; t < response.length(); t++) {
            if (response.byPolicy(t) && (t == 0 || !response.byPolicy(t - 1))) {
                rewards.add(0.0);
            }
            while (told < turnRewards.size() && turnEnds.get(told) == t + 1) {
                int newest = rewards.size() - 1;
                rewards.set(newest, rewards.get(newest) + turnRewards.get(told++));
            }
        }
        return rewards;
    }

    /** Text of the current turn. */
    private record Turn(Transcript response, int from) implements Transcript {
        @Override
        public int length() {
            return response.length() - from;
        }

        @Override
        public int token(int position) {
            return response.token(from + position);
        }

        @Override
        public boolean byPolicy(int position) {
            return response.byPolicy(from + position);
        }
    }

    @Override
    public void abandon() {
        close();
    }

    private void close() {
        if (isBegun && !isClosed) {
            isClosed = true;
            partner().ask(question("close", PartnerJson.object())); // nobody waits for what it says to that
        }
    }

    /**
     * An answer of the environment to {@code reset}, {@code step} or {@code state}.
     *
     * @param text for the policy, before framing; empty for none
     * @param tokens for the policy instead of a text; null for none
     * @param reward of this turn; in a state, of the episode so far
     * @param hasReward whether it has a reward
     * @param done whether the episode is over
     */
    record EpisodeAnswer(
            String text,
            int @Nullable [] tokens,
            double reward,
            boolean hasReward,
            Map<String, Double> components,
            boolean done) {
        private static final Set<String> KNOWN =
                Set.of("id", "rollout_id", "step", "text", "tokens", "reward", "reward_components", "done", "error");

        /**
         * Parses an answer.
         *
         * @param step number of turns so far, which the answer must repeat
         * @throws PartnerException naming the missing or invalid field
         */
        static EpisodeAnswer read(ObjectNode answer, int step, String who) {
            PartnerJson.requireKnown(answer, KNOWN, who);
            JsonNode counted = answer.path("step");
            if (!counted.isIntegralNumber()) {
                throw new PartnerException(
                        who + " must say in \"step\" the number of turns of the episode, so that none is taken twice: "
                                + (counted.isMissingNode() ? "there is none" : counted));
            }
            if (counted.asLong() != step) {
                throw new PartnerException(who + " has taken " + counted + " turns of an episode with " + step
                        + "; a repeated turn must get the same answer and be taken once");
            }
            JsonNode text = answer.path("text");
            JsonNode tokens = answer.path("tokens");
            boolean hasText = PartnerJson.isThere(text);
            boolean hasTokens = PartnerJson.isThere(tokens);
            if (hasText && !text.isTextual()) {
                throw new PartnerException(who + " answered without a string as text: " + text.getNodeType());
            }
            if (hasText && hasTokens) {
                throw new PartnerException(who + " answered with text and tokens; give one of them");
            }
            JsonNode done = answer.path("done");
            if (PartnerJson.isThere(done) && !done.isBoolean()) {
                throw new PartnerException(who + " must answer with true or false as done: " + done);
            }
            JsonNode reward = answer.path("reward");
            boolean hasReward = PartnerJson.isThere(reward);
            return new EpisodeAnswer(
                    hasText ? text.asText() : "",
                    hasTokens ? tokens(tokens, who) : null,
                    hasReward ? PartnerJson.number(reward, "reward", who) : 0,
                    hasReward,
                    PartnerJson.numbersByName(answer.path("reward_components"), "reward_components", who),
                    done.asBoolean(false));
        }

        private static int[] tokens(JsonNode value, String who) {
            if (!value.isArray()) {
                throw new PartnerException(
                        who + " must answer with a list of token ids as tokens: " + value.getNodeType());
            }
            int[] tokens = new int[value.size()];
            for (int t = 0; t < tokens.length; t++) {
                if (!value.get(t).isInt()) {
                    throw new PartnerException(
                            who + " answered with no token id as tokens[" + t + "]: " + value.get(t));
                }
                tokens[t] = value.get(t).asInt();
            }
            return tokens;
        }
    }

    /**
     * OpenEnv client: a WebSocket per episode, messages {@code {"type": ..., "data": ...}} as in openenv-core 0.2.
     *
     * <p>The protocol has no message id, so no message is retried and a lost answer loses the episode. Only a
     * connection that could not be opened is retried.
     */
    static final class OpenEnvPartner implements Partner {
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
            if (question.body()
                    .path("op")
                    .asText()
                    .equals("state")) { // which says nothing of what the episode is worth
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
                if (open >= place.limits().concurrency()) {
                    waiting.add(session);
                    return session.begun;
                }
                open++;
                session.isOpen = true;
            }
            session.connect();
            return session.begun;
        }

        /** Adds the data row's {@code reset} fields. */
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

        /** Converts an observation to an answer of our protocol. */
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
                WebSocket.Builder builder = CLIENT.newWebSocketBuilder()
                        .connectTimeout(Duration.ofMillis(place.limits().timeoutMs()));
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
                        && TimeUnit.NANOSECONDS.toMillis(now - awaySince)
                                < place.limits().patienceMs();
                if (mayComeBack && !isOver()) {
                    Partners.sharedClock().schedule(this::connect, PAUSE_MS, TimeUnit.MILLISECONDS);
                } else {
                    begun.completeExceptionally(new PartnerException(
                            place.shown() + " could not be connected to"
                                    + (failure instanceof ConnectException
                                            ? " for " + place.limits().patienceMs() + " ms (patience_ms)"
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
                                () -> lost(
                                        "it has not answered within "
                                                + place.limits().timeoutMs() + " ms (timeout_ms)",
                                        null),
                                place.limits().timeoutMs(),
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
                if (message.length() + data.length()
                        > place.limits().answerBytes()) { // the socket calls one after the other
                    lost("its answer is longer than " + place.limits().answerBytes() + " bytes (answer_bytes)", null);
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
                    lost("it sent a message without a request", null);
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
                                    .schedule(of::abort, 1, TimeUnit.SECONDS)); // a peer that does not answer the close
                }
            }
        }
    }
}
