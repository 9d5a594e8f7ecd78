package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.kl.InRewardPenalty;
import dev.millrace.corrections.kl.KlController;
import dev.millrace.corrections.kl.KlEstimator;

/** {@code kl}: verl's estimators with their gradients, elementwise and without mask, and its penalty in the reward. */
final class KlFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "kl";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        String op = golden.config().text("op");
        return switch (op) {
            case "kl_penalty" -> elementwise(golden);
            case "apply_kl_penalty" -> inReward(golden);
            default -> throw new IllegalArgumentException("op must be kl_penalty or apply_kl_penalty: " + op);
        };
    }

    private static ObjectNode elementwise(ConformanceCase golden) {
        KlEstimator estimator = KlEstimator.named(golden.config().text("kl_penalty"));
        CaseSequences sequences = golden.sequences();
        double[] current = sequences.doubles("logprobs");
        double[] reference = sequences.doubles("ref_logprobs");
        double[] values = new double[current.length];
        double[] gradient = new double[current.length];
        for (int t = 0; t < values.length; t++) {
            values[t] = estimator.value(current[t] - reference[t]);
            gradient[t] = estimator.derivative(current[t] - reference[t]);
        }
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("kl", sequences.ragged(values));
        output.set("grad_logprobs", sequences.ragged(gradient));
        return output;
    }

    private static ObjectNode inReward(ConformanceCase golden) {
        KlController controller = KlControllerFamily.controller(golden.config().section("kl_ctrl"));
        InRewardPenalty penalty =
                InRewardPenalty.asReference(KlEstimator.named(golden.config().text("kl_penalty", "kl")));
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        float[] current = sequences.floats("old_logprobs");
        float[] reference = sequences.floats("ref_logprobs");
        double[] rewards = penalty.penalise(
                batch, sequences.doubles("token_level_scores"), current, reference, controller.coefficient());
        double measured = penalty.measure(batch, current, reference);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("token_level_rewards", sequences.ragged(rewards));
        ObjectNode metrics = output.putObject("metrics");
        metrics.set("actor/reward_kl_penalty", JsonNumbers.write(measured));
        metrics.set("actor/reward_kl_penalty_coeff", JsonNumbers.write(controller.coefficient()));
        output.set(
                "kl_coef_after",
                JsonNumbers.write(
                        KlControllerFamily.updated(controller, controller.coefficient(), measured, sequences.count())));
        return output;
    }
}
