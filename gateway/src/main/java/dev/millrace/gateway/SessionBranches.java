package dev.millrace.gateway;

import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.SessionEnding.BranchEnding;
import dev.millrace.gateway.SessionVerdict.BranchVerdict;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.Rollout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Which further branches of a session become rollouts, and what each is worth: every one that its end names, trained on the turns
 * that no branch before it has, as another sample of the session's group.
 */
final class SessionBranches {
    private final Session session;
    private final PlayedTurn main;
    private final List<List<PlayedTurn>> own = new ArrayList<>();
    private final List<BranchVerdict> verdicts = new ArrayList<>();

    /**
     * @param main last turn of the branch that the session's own sample becomes
     * @throws RefusedCallException if what is said of one does not fit it
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
                    "branches", "branches must be left out of a session that failed or was aborted: it has no verdict");
        }
        return List.of();
    }

    /** Of each end that is not the main one, unless it is an answer that the agent let fall for another to the same call. */
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
        List<PlayedTurn> turns =
                last.branch().stream().filter(turn -> !trained.contains(turn)).toList();
        if (turns.isEmpty()) {
            throw RefusedCallException.invalid(
                    "branches",
                    "the branch that ends with turn " + verdict.turn()
                            + " has no turn that is not part of one that is trained on already");
        }
        if (!verdict.turnRewards().isEmpty() && verdict.turnRewards().size() != turns.size()) {
            throw RefusedCallException.invalid(
                    "branches",
                    "turn_rewards must be one for each of the " + turns.size()
                            + " turns of the branch that ends with turn " + verdict.turn()
                            + " and that no branch before it has: "
                            + verdict.turnRewards().size());
        }
        return turns;
    }

    int count() {
        return own.size();
    }

    /**
     * The rollouts.
     *
     * @param samples one for each
     * @param reward of the session
     * @param rolloutId of the session's own sample
     */
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
        if (verdict.reward().isPresent()) {
            return SessionRollout.given(verdict.reward().getAsDouble(), verdict.components(), verdict.turnRewards());
        }
        Map<String, Double> parts = new HashMap<>();
        ofSession.components().forEach((name, value) -> parts.put(name, value * verdict.share()));
        return SessionRollout.given(ofSession.reward() * verdict.share(), parts, verdict.turnRewards());
    }

    /** What it continues from is in the rollout that trains on it, or else in the session's own. */
    private Branch from(
            List<PlayedTurn> turns, BranchVerdict verdict, String rolloutId, Map<PlayedTurn, String> trainedBy) {
        PlayedTurn first = turns.get(0);
        PlayedTurn parent = first.parent();
        int position =
                parent == null ? common(turns.get(turns.size() - 1).tokens(), main.tokens()) : parent.tokens().length;
        return new Branch(
                parent == null ? rolloutId : Objects.requireNonNull(trainedBy.get(parent)),
                position,
                reason(first),
                verdict.reward().isPresent() ? null : (Double) verdict.share());
    }

    /** Its own, or that of the session's own branch, where that is the one that went another way. */
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

    private static int common(int[] a, int[] b) {
        int mismatch = Arrays.mismatch(a, b);
        return mismatch < 0 ? a.length : mismatch;
    }
}
