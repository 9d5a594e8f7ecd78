package dev.millrace.topology.join;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;

/** Why a rollout is refused that lacks what a stage of the algorithm reads, and who could have given it. */
final class MissingInput {
    private MissingInput() {}

    static Refusal of(StageInput input) {
        return Refusal.of(
                RefusalReason.VECTORS,
                field(input),
                "a stage of the algorithm reads " + input.text() + ", and the rollout has none; " + wayOut(input)
                        + ", or leave that stage out");
    }

    private static String field(StageInput input) {
        return switch (input) {
            case TURN_REWARDS -> "credit.turn_level_rewards";
            case TOKEN_REWARDS -> "credit.token_level_rewards";
            case VALUES -> "credit.token_level_values";
            case GREEDY_REWARDS -> "credit.greedy_reward";
            case REWARD_COMPONENTS -> "reward_components";
            case DISTRIBUTIONS -> "sampling_trace.top_log_probs";
            default -> "";
        };
    }

    private static String wayOut(StageInput input) {
        return switch (input) {
            case TURN_REWARDS, TOKEN_REWARDS ->
                "have them recorded (reward.credit=true, of an environment that knows them, or a reward record with credit)";
            case VALUES -> "have a critic write them (in the credit of a reward record, or of the rollout)";
            case GREEDY_REWARDS ->
                "have the prompt answered greedily too, and that reward written beside (in the credit of a reward record, or of the rollout)";
            case REWARD_COMPONENTS -> "have its environment or reward function name them";
            case DISTRIBUTIONS ->
                "have them recorded and scored (admission.sampling.top_log_probs and scorer.top_log_probs)";
            case ENTROPIES -> "have them scored (scorer.entropies=true)";
            case SQUARED_PROBABILITIES -> "have them scored (scorer.sum_squared_probs=true)";
            case REFERENCE -> "have a reference score joined (topology.join.reference=true)";
            case TEACHER -> "have a teacher's score joined (topology.join.teacher=true)";
            default -> "have them recorded";
        };
    }
}
