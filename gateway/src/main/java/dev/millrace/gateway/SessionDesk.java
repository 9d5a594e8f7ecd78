package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.Session.SessionId;
import dev.millrace.gateway.SessionDesk.SessionVerdict.BranchVerdict;
import dev.millrace.gateway.SessionEnding.BranchEnding;
import dev.millrace.gateway.TurnPlayer.PromptMatcher;
import dev.millrace.gateway.TurnPlayer.StopTokens;
import dev.millrace.generator.sampling.TurnEngine.TokenListener;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

final class SessionDesk {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long WRITE_LIMIT_MS = 60_000;
    private static final Set<String> OPENING =
            Set.of("prompt_id", "group", "sample_index", "environment", "policy", "agent");

    private final RunIdentity run;
    private final String gatewayId;
    private final SessionContext context;
    private final TurnPlayer player;
    private final GatewayLoop loop;

    SessionDesk(RunIdentity run, String gatewayId, SessionContext context, TurnPlayer player, GatewayLoop loop) {
        this.run = run;
        this.gatewayId = gatewayId;
        this.context = context;
        this.player = player;
        this.loop = loop;
    }

    Session session(String id) {
        return context.sessions().session(id);
    }

    ObjectNode open(JsonNode body, String url) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        for (var fields = body.fieldNames(); fields.hasNext(); ) {
            String name = fields.next();
            if (!OPENING.contains(name)) {
                throw RefusedCallException.unsupported(name, name + " is no field here; there are " + OPENING);
            }
        }
        requireEqual("policy", body.path("policy").asText(""), run.policyId());
        String group = body.path("group").asText(body.path("prompt_id").asText(""));
        ReleasedSample sample = context.sessions()
                .claim(
                        group.isEmpty() ? null : group,
                        body.path("sample_index").asInt(-1),
                        context.config().claimWaitMs());
        try {
            PromptRequest request = sample.prompt().request();
            requireEqual("environment", body.path("environment").asText(""), request.getEnvironment());
            Session session = new Session(
                    SessionId.of(
                            sample.prompt().partition().partition(),
                            sample.prompt().offset(),
                            sample.index()),
                    sample,
                    body.path("agent").isTextual() ? body.get("agent").textValue() : null,
                    context.clock().millis());
            SessionFence.await(
                    context.log()
                            .opened(session)
                            .thenCompose(done -> context.fence().confirm(session)),
                    WRITE_LIMIT_MS);
            context.sessions().opened(session);
            context.meters().session("opened");
            return opened(session, url);
        } catch (RuntimeException e) {
            context.sessions().giveBack(sample);
            throw e;
        }
    }

    private static void requireEqual(String name, String asked, String there) {
        if (!asked.isEmpty() && !asked.equals(there)) {
            throw RefusedCallException.invalid(
                    name, name + " must be '" + there + "', which it is here: '" + asked + "'");
        }
    }

    private ObjectNode opened(Session session, String url) {
        PromptRequest request = session.sample().prompt().request();
        int[] prompt = PackedInts.toArray(request.getPromptTokens());
        String base = url + "/sessions/" + session.id().text();
        ObjectNode opened = JSON.createObjectNode();
        opened.put("session", session.id().text());
        opened.put("base_url", base);
        opened.put("openai_base_url", base + "/v1");
        opened.put("rollout_id", session.sample().name());
        opened.put("group", request.getGroupId());
        opened.put("sample_index", session.sample().index());
        opened.put("group_size", request.getSamples());
        opened.put("policy", run.policyId());
        opened.put("version", context.engine().version());
        opened.put("environment", request.getEnvironment());
        opened.set("environment_state", state(request.getEnvironmentState()));
        opened.put("prompt", context.tokenizer().text(prompt));
        opened.set("prompt_token_ids", AnswerJson.ids(prompt));
        opened.put("tool_calls", context.tools().name().toLowerCase(Locale.ROOT));
        SamplingParameters sampling = request.getSampling();
        opened.putObject("sampling")
                .put("temperature", sampling.getTemperature())
                .put("top_p", sampling.getTopP())
                .put("top_k", sampling.getTopK())
                .put("min_p", sampling.getMinP())
                .put("max_tokens", sampling.getMaxTokens());
        opened.put("idle_ms", context.config().idleMs());
        opened.put("limit_ms", context.config().limitMs());
        return opened;
    }

    /** Environment text; for data prompts the row. */
    private static JsonNode state(String text) {
        try {
            JsonNode state = JSON.readTree(text);
            return state == null || state.isMissingNode()
                    ? JSON.getNodeFactory().textNode(text)
                    : state;
        } catch (JsonProcessingException e) {
            return JSON.getNodeFactory().textNode(text);
        }
    }

    /** The answer to a call for one choice. */
    PlayedTurn turn(Session session, AgentCall call) {
        return play(session, call, choice -> TokenListener.NONE).get(0);
    }

    List<PlayedTurn> play(Session session, AgentCall call, IntFunction<TokenListener> listeners) {
        return player.play(session, call, listeners);
    }

    /** How many tokens the prompt of a call has. */
    int promptTokens(Session session, AgentCall call) {
        session.requireOpen();
        return player.prompt(session, call).tokens().length;
    }

    /** Played turns as a completion. */
    ObjectNode chat(Session session, AgentCall call, List<PlayedTurn> turns) {
        return json(session, call).answer(turns);
    }

    AnswerStream stream(Session session, AgentCall call) {
        session.requireOpen();
        long now = context.clock().millis();
        return new AnswerStream(
                call,
                context.tokenizer(),
                StopTokens.of(session.sample().prompt(), context.tokenizer()),
                context.tools(),
                json(session, call),
                (call.isChat() ? "chatcmpl-" : "cmpl-") + session.id().text() + "-" + now,
                now / 1000);
    }

    private AnswerJson json(Session session, AgentCall call) {
        return new AnswerJson(
                call, session, context.tokenizer(), call.model().isEmpty() ? run.policyId() : call.model());
    }

    ObjectNode models() {
        ObjectNode list = JSON.createObjectNode();
        list.put("object", "list");
        list.putArray("data").add(model(run.policyId()));
        return list;
    }

    /** @throws RefusedCallException if it is not the policy */
    ObjectNode model(String name) {
        if (!name.equals(run.policyId())) {
            throw RefusedCallException.noModel(name, run.policyId());
        }
        return JSON.createObjectNode()
                .put("id", name)
                .put("object", "model")
                .put("created", 0)
                .put("owned_by", run.runId());
    }

    ObjectNode shown(String id) {
        Session session = context.sessions().session(id);
        ObjectNode shown = JSON.createObjectNode();
        shown.put("session", id);
        shown.put("rollout_id", session.sample().name());
        shown.put("open", session.isOpen());
        var turns = shown.putArray("turns");
        session.turns()
                .forEach(turn -> turns.addObject()
                        .put("turn", turn.record().getTurn())
                        .put("parent_turn", turn.record().getParentTurn())
                        .put(
                                "fork_reason",
                                turn.record().getForkReason() == null
                                        ? null
                                        : turn.record().getForkReason().toString())
                        .put("prompt_tokens", turn.record().getUsage().getPromptTokens())
                        .put("completion_tokens", turn.record().getUsage().getCompletionTokens())
                        .put("finish_reason", turn.record().getFinishReason().toString()));
        return shown;
    }

    /** Idempotent. */
    ObjectNode complete(String id, JsonNode body) {
        SessionEvent before = context.sessions().endedBefore(id);
        if (before != null) {
            return completedBefore(before);
        }
        Session session = context.sessions().session(id);
        if (session.isOpen()) {
            SessionEnding wanted = ending(session, SessionVerdict.of(body));
            if (session.end(wanted)) {
                loop.end(wanted);
            } else {
                wanted.branches().forEach(branch -> context.sessions().giveBack(branch.sample()));
            }
        }
        SessionEnding ending = Objects.requireNonNull(session.ending(), "its end has begun");
        if (ending.isOverdue()) {
            throw RefusedCallException.conflict("the session " + id + " has ended: " + ending.error());
        }
        SessionFence.await(ending.written(), WRITE_LIMIT_MS);
        return completed(ending);
    }

    /** The log's end of a session of another gateway. */
    private static ObjectNode completedBefore(SessionEvent end) {
        ObjectNode completed = JSON.createObjectNode();
        completed.put("session", end.getSessionId());
        completed.put("rollout_id", end.getGroupId() + "/" + end.getSampleIndex());
        completed.put("finish_reason", reason(end.getFinishReason()));
        completed.put("note", "it was ended at " + end.getGatewayId() + " before");
        return completed;
    }

    private SessionEnding ending(Session session, SessionVerdict verdict) {
        List<PlayedTurn> turns = session.turns();
        if (turns.isEmpty()) {
            if (!verdict.branches().isEmpty()) {
                throw RefusedCallException.invalid("branches", "the session has no turn, and so no branches");
            }
            return new SessionEnding(session, null, -1, verdict.error(), List.of(), false, new CompletableFuture<>());
        }
        PlayedTurn last = verdict.turn().isEmpty()
                ? turns.get(turns.size() - 1)
                : session.turn(verdict.turn().getAsInt())
                        .orElseThrow(() -> RefusedCallException.invalid(
                                "turn", "there is no turn " + verdict.turn().getAsInt() + " in this session"));
        SessionRollout branch = new SessionRollout(session, last);
        if (!verdict.reward().turns().isEmpty() && verdict.reward().turns().size() != branch.policyTurns()) {
            throw RefusedCallException.invalid(
                    "turn_rewards",
                    "turn_rewards must be one for each of the " + branch.policyTurns()
                            + " turns of the branch that ends with turn "
                            + last.record().getTurn() + ": "
                            + verdict.reward().turns().size());
        }
        SessionBranches further = new SessionBranches(session, last, verdict);
        VerifiedReward reward = reward(branch, verdict);
        Rollout rollout = branch.record(
                reward,
                verdict.status(),
                verdict.error(),
                gatewayId,
                run.policyId(),
                context.engine().identity(),
                context.clock().millis());
        List<ReleasedSample> samples = context.sessions().claimBeside(session, further.count());
        try {
            return new SessionEnding(
                    session,
                    rollout,
                    last.record().getTurn(),
                    verdict.error(),
                    further.rollouts(
                            samples,
                            reward,
                            rollout.getRolloutId(),
                            gatewayId,
                            run.policyId(),
                            context.engine().identity(),
                            context.clock().millis()),
                    false,
                    new CompletableFuture<>());
        } catch (RuntimeException e) {
            samples.forEach(context.sessions()::giveBack);
            throw e;
        }
    }

    /** The agent's reward, else the run's own. */
    static VerifiedReward reward(SessionRollout branch, SessionVerdict verdict) {
        if (verdict.reward().whole().isPresent() || !verdict.isJudged()) {
            return SessionRollout.given(
                    verdict.reward().whole().orElse(0),
                    verdict.reward().components(),
                    verdict.reward().turns());
        }
        VerifiedReward judged;
        try {
            judged = branch.judged();
        } catch (RuntimeException e) { // it stays open: the agent may retry, or send the reward itself
            throw RefusedCallException.notNow(
                    "not_judged",
                    "the run's own reward cannot score the session: " + e.getMessage()
                            + "; complete it again later, or with a reward");
        }
        return SessionRollout.given(
                judged.reward(), judged.components(), verdict.reward().turns());
    }

    private static ObjectNode completed(SessionEnding ending) {
        ObjectNode completed = JSON.createObjectNode();
        Session session = ending.session();
        Rollout rollout = ending.rollout();
        completed.put("session", session.id().text());
        if (rollout == null) {
            completed.putNull("rollout_id");
            completed.put("note", "the session had no turn, so its sample is free again");
            return completed;
        }
        List<Integer> trained = session.turn(ending.trainedTurn())
                .map(turn -> turn.branch().stream()
                        .map(each -> each.record().getTurn())
                        .toList())
                .orElse(List.of());
        completed.put("rollout_id", rollout.getRolloutId());
        completed.put("reward", rollout.getReward());
        completed.put("finish_reason", reason(rollout.getFinishReason()));
        completed.put("response_tokens", rollout.getMask().remaining());
        completed.set("trained_turns", JSON.valueToTree(trained));
        Set<Integer> all = new HashSet<>(trained);
        if (!ending.branches().isEmpty()) {
            ArrayNode branches = completed.putArray("branches");
            for (BranchEnding branch : ending.branches()) {
                List<Integer> own = branch.own().stream()
                        .map(turn -> turn.record().getTurn())
                        .toList();
                all.addAll(own);
                branches.addObject()
                        .put("rollout_id", branch.rollout().getRolloutId())
                        .put("turn", branch.lastTurn())
                        .put("reason", branch.rollout().getBranch().getReason().toString())
                        .put("reward", branch.rollout().getReward())
                        .put("reward_share", branch.rollout().getBranch().getRewardShare())
                        .put("response_tokens", branch.rollout().getMask().remaining())
                        .set("trained_turns", JSON.valueToTree(own));
            }
        }
        completed.set(
                "other_turns",
                JSON.valueToTree(session.turns().stream()
                        .map(turn -> turn.record().getTurn())
                        .filter(turn -> !all.contains(turn))
                        .toList()));
        return completed;
    }

    private static String reason(@Nullable FinishReason reason) {
        return String.valueOf(reason).toLowerCase(Locale.ROOT);
    }

    /**
     * Extra branches of a session that become rollouts: those named at its end, trained on turns that no earlier
     * branch has, as further samples of the group.
     */
    static final class SessionBranches {
        private final Session session;
        private final PlayedTurn main;
        private final List<List<PlayedTurn>> own = new ArrayList<>();
        private final List<BranchVerdict> verdicts = new ArrayList<>();

        /**
         * @param main last turn of the session's own branch
         * @throws RefusedCallException if a branch verdict does not fit
         */
        SessionBranches(Session session, PlayedTurn main, SessionVerdict verdict) {
            this.session = session;
            this.main = main;
            Set<PlayedTurn> trained = these(main.branch());
            List<BranchVerdict> wanted = verdict.allBranches() ? all() : verdict.branches();
            for (BranchVerdict each : verdict.isJudged() ? wanted : refusedUnlessEmpty(verdict.branches())) {
                List<PlayedTurn> turns = ownTurns(each, trained);
                trained.addAll(turns);
                own.add(turns);
                verdicts.add(each);
            }
        }

        private static Set<PlayedTurn> these(List<PlayedTurn> turns) {
            Set<PlayedTurn> set = Collections.newSetFromMap(new IdentityHashMap<>());
            set.addAll(turns);
            return set;
        }

        private static List<BranchVerdict> refusedUnlessEmpty(List<BranchVerdict> named) {
            if (!named.isEmpty()) {
                throw RefusedCallException.invalid(
                        "branches",
                        "branches must be left out of a session that failed or was aborted: it has no verdict");
            }
            return List.of();
        }

        /** Every other leaf, except answers dropped for another one to the same call. */
        private List<BranchVerdict> all() {
            List<PlayedTurn> turns = session.turns();
            Set<PlayedTurn> goneOn = these(main.branch());
            turns.forEach(turn -> {
                if (turn.parent() != null) {
                    goneOn.add(turn.parent());
                }
            });
            return turns.stream()
                    .filter(turn -> !goneOn.contains(turn))
                    .filter(turn -> turns.stream().noneMatch(other -> isPreferred(other, turn, goneOn)))
                    .map(turn -> BranchVerdict.ofWhole(turn.record().getTurn()))
                    .toList();
        }

        private static boolean isPreferred(PlayedTurn other, PlayedTurn to, Set<PlayedTurn> goneOn) {
            return other.record().getTurn() != to.record().getTurn()
                    && other.record().getParentTurn() == to.record().getParentTurn()
                    && other.record().getContextTokens().equals(to.record().getContextTokens())
                    && (goneOn.contains(other)
                            || other.record().getTurn() > to.record().getTurn());
        }

        private List<PlayedTurn> ownTurns(BranchVerdict verdict, Set<PlayedTurn> trained) {
            PlayedTurn last = session.turn(verdict.turn())
                    .orElseThrow(() -> RefusedCallException.invalid(
                            "branches", "there is no turn " + verdict.turn() + " in this session"));
            List<PlayedTurn> turns = last.branch().stream()
                    .filter(turn -> !trained.contains(turn))
                    .toList();
            if (turns.isEmpty()) {
                throw RefusedCallException.invalid(
                        "branches",
                        "the branch that ends with turn " + verdict.turn()
                                + " has no turn that is not part of one that is trained on already");
            }
            if (!verdict.reward().turns().isEmpty() && verdict.reward().turns().size() != turns.size()) {
                throw RefusedCallException.invalid(
                        "branches",
                        "turn_rewards must be one for each of the " + turns.size()
                                + " turns of the branch that ends with turn " + verdict.turn()
                                + " and that no branch before it has: "
                                + verdict.reward().turns().size());
            }
            return turns;
        }

        int count() {
            return own.size();
        }

        /** @param rolloutId of the session's own sample */
        List<BranchEnding> rollouts(
                List<ReleasedSample> samples,
                VerifiedReward reward,
                String rolloutId,
                String gatewayId,
                String policyId,
                EngineIdentity engine,
                long nowMs) {
            Map<PlayedTurn, String> trainedBy = new IdentityHashMap<>();
            main.branch().forEach(turn -> trainedBy.put(turn, rolloutId));
            List<BranchEnding> made = new ArrayList<>();
            for (int i = 0; i < own.size(); i++) {
                List<PlayedTurn> turns = own.get(i);
                ReleasedSample sample = samples.get(i);
                BranchVerdict verdict = verdicts.get(i);
                Branch from = from(turns, verdict, rolloutId, trainedBy);
                Rollout rollout = new SessionRollout(session, sample, turns, from)
                        .record(worth(verdict, reward), null, null, gatewayId, policyId, engine, nowMs);
                made.add(new BranchEnding(sample, rollout, turns));
                turns.forEach(turn -> trainedBy.put(turn, sample.name()));
            }
            return made;
        }

        private static VerifiedReward worth(BranchVerdict verdict, VerifiedReward ofSession) {
            if (verdict.reward().whole().isPresent()) {
                return SessionRollout.given(
                        verdict.reward().whole().getAsDouble(),
                        verdict.reward().components(),
                        verdict.reward().turns());
            }
            Map<String, Double> parts = new HashMap<>();
            ofSession.components().forEach((name, value) -> parts.put(name, value * verdict.share()));
            return SessionRollout.given(
                    ofSession.reward() * verdict.share(),
                    parts,
                    verdict.reward().turns());
        }

        /** The rollout that trains on its prefix, else the session's own. */
        private Branch from(
                List<PlayedTurn> turns, BranchVerdict verdict, String rolloutId, Map<PlayedTurn, String> trainedBy) {
            PlayedTurn first = turns.get(0);
            PlayedTurn parent = first.parent();
            int position = parent == null
                    ? PromptMatcher.common(turns.get(turns.size() - 1).tokens(), main.tokens())
                    : parent.tokens().length;
            return new Branch(
                    parent == null ? rolloutId : Objects.requireNonNull(trainedBy.get(parent)),
                    position,
                    reason(first),
                    verdict.reward().whole().isPresent() ? null : (Double) verdict.share());
        }

        /** Its own reason, or that of the session's branch if that one forked. */
        private BranchReason reason(PlayedTurn first) {
            @Nullable BranchReason said = first.record().getForkReason();
            if (said != null) {
                return said;
            }
            return main.branch().stream()
                    .filter(turn -> turn.record().getTurn() > first.record().getTurn())
                    .map(turn -> turn.record().getForkReason())
                    .filter(Objects::nonNull)
                    .findFirst()
                    .orElse(BranchReason.EDIT);
        }
    }

    /**
     * An agent's verdict on its session.
     *
     * @param reward empty for the run's own
     * @param status null for the last turn's
     * @param error null for none
     * @param turn last turn of the trained branch; empty for the newest
     */
    record SessionVerdict(
            GivenReward reward,
            @Nullable FinishReason status,
            @Nullable String error,
            OptionalInt turn,
            List<BranchVerdict> branches,
            boolean allBranches) {
        private static final Set<String> KEYS =
                Set.of("reward", "reward_components", "turn_rewards", "status", "error", "turn", "branches");
        private static final Set<String> BRANCH_KEYS =
                Set.of("turn", "reward", "reward_share", "reward_components", "turn_rewards");

        /**
         * What an agent gives for a branch.
         *
         * @param whole of the branch; empty if it gives none
         * @param turns one per turn; empty for none
         */
        record GivenReward(OptionalDouble whole, Map<String, Double> components, List<Double> turns) {}

        /**
         * An agent's verdict on an extra branch.
         *
         * @param reward of its own turns; empty for a share of the session's
         * @param share 0 to 1; ignored with an own reward
         */
        record BranchVerdict(int turn, GivenReward reward, double share) {

            /** With the session's whole reward. */
            static BranchVerdict ofWhole(int turn) {
                return new BranchVerdict(turn, new GivenReward(OptionalDouble.empty(), Map.of(), List.of()), 1);
            }
        }

        /** @throws RefusedCallException naming the invalid field */
        static SessionVerdict of(JsonNode body) {
            if (!body.isObject()) {
                throw RefusedCallException.invalid(null, "the body must be a JSON object");
            }
            requireKnown(body, KEYS, "");
            JsonNode named = body.path("branches");
            boolean all = named.isTextual() && named.textValue().equals("all");
            if (CallReader.isGiven(named) && !all && !named.isArray()) {
                throw RefusedCallException.invalid(
                        "branches", "branches must be \"all\", or a list of objects with turn: " + named);
            }
            List<BranchVerdict> branches = new ArrayList<>();
            if (!all) {
                named.forEach(each -> branches.add(branch(each, "branches[" + branches.size() + "].")));
            }
            JsonNode turn = body.path("turn");
            return new SessionVerdict(
                    reward(body, ""),
                    status(body.path("status").asText("completed")),
                    CallReader.isGiven(body.path("error")) ? body.get("error").asText() : null,
                    CallReader.isGiven(turn) ? OptionalInt.of(turn.asInt(-1)) : OptionalInt.empty(),
                    List.copyOf(branches),
                    all);
        }

        private static BranchVerdict branch(JsonNode body, String place) {
            if (!body.isObject()) {
                throw RefusedCallException.invalid("branches", "branches must be a list of objects with turn: " + body);
            }
            requireKnown(body, BRANCH_KEYS, place);
            if (!body.path("turn").isInt()) {
                throw RefusedCallException.invalid(
                        place + "turn", place + "turn must be the last turn of a branch: " + body.path("turn"));
            }
            JsonNode reward = body.path("reward");
            JsonNode share = body.path("reward_share");
            if (CallReader.isGiven(reward) && CallReader.isGiven(share)) {
                throw RefusedCallException.invalid(
                        place + "reward_share",
                        place + "reward_share must be left out where " + place + "reward is given: " + share);
            }
            if (!CallReader.isGiven(reward) && CallReader.isGiven(body.path("reward_components"))) {
                throw RefusedCallException.invalid(
                        place + "reward_components",
                        place + "reward_components must be left out where there is no " + place
                                + "reward: of a share they are the session's");
            }
            double part = CallReader.isGiven(share) ? finite(share, place + "reward_share") : 1;
            if (part < 0 || part > 1) {
                throw RefusedCallException.invalid(
                        place + "reward_share", place + "reward_share must be from 0 to 1: " + share);
            }
            return new BranchVerdict(body.get("turn").intValue(), reward(body, place), part);
        }

        private static GivenReward reward(JsonNode body, String place) {
            JsonNode reward = body.path("reward");
            return new GivenReward(
                    CallReader.isGiven(reward)
                            ? OptionalDouble.of(finite(reward, place + "reward"))
                            : OptionalDouble.empty(),
                    components(body, place),
                    turnRewards(body, place));
        }

        private static void requireKnown(JsonNode body, Set<String> keys, String place) {
            for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
                String name = names.next();
                if (!keys.contains(name)) {
                    throw RefusedCallException.unsupported(
                            place + name, place + name + " is no field here; there are " + keys);
                }
            }
        }

        private static Map<String, Double> components(JsonNode body, String place) {
            Map<String, Double> components = new HashMap<>();
            body.path("reward_components")
                    .properties()
                    .forEach(each -> components.put(
                            each.getKey(), finite(each.getValue(), place + "reward_components." + each.getKey())));
            return components;
        }

        private static List<Double> turnRewards(JsonNode body, String place) {
            List<Double> turns = new ArrayList<>();
            body.path("turn_rewards")
                    .forEach(each -> turns.add(finite(each, place + "turn_rewards[" + turns.size() + "]")));
            return turns;
        }

        private static double finite(JsonNode value, String name) {
            if (!value.isNumber() || !Float.isFinite((float) value.doubleValue())) {
                throw RefusedCallException.invalid(name, name + " must be a finite number: " + value);
            }
            return value.doubleValue();
        }

        private static @Nullable FinishReason status(String text) {
            return switch (text.toLowerCase(Locale.ROOT)) {
                case "completed" -> null;
                case "length" -> FinishReason.LENGTH;
                case "timeout" -> FinishReason.TIMEOUT;
                case "aborted" -> FinishReason.ABORTED;
                case "failed" -> FinishReason.FAILED;
                default ->
                    throw RefusedCallException.invalid(
                            "status", "status must be completed, length, timeout, aborted or failed: " + text);
            };
        }

        /** True if there is a verdict, so a reward is meaningful. */
        boolean isJudged() {
            return status != FinishReason.ABORTED && status != FinishReason.FAILED;
        }
    }
}
