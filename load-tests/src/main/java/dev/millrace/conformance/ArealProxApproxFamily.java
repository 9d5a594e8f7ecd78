package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.ProximalApproximation;

/**
 * {@code areal_prox_approx}: AReaL's approximations of the proximal log-probs, at every token, mask or not, with the
 * reference's epsilon in the linear one.
 */
final class ArealProxApproxFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "areal_prox_approx";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        int currentVersion = golden.config().integer("current_version");
        CaseSequences sequences = golden.sequences();
        float[] behavior = sequences.floats("old_logprobs");
        float[] current = sequences.floats("logprobs");
        int[] versions = sequences.integers("versions");
        double[] linear = new double[versions.length];
        for (int t = 0; t < versions.length; t++) {
            if (versions[t] > currentVersion) { // the reference leaves such a token at its behavior log-prob
                versions[t] = ProximalApproximation.NOT_SAMPLED;
            }
            double share = ProximalApproximation.currentShare(versions[t], currentVersion);
            linear[t] = ProximalApproximation.referenceLinear(behavior[t], current[t], share);
        }
        TokenBatch unmasked = new TokenBatch(sequences.offsets(), new byte[versions.length]);
        float[] loglinear = new float[versions.length];
        float[] rollout = new float[versions.length];
        ProximalApproximation.LOGLINEAR.compute(unmasked, behavior, current, versions, currentVersion, loglinear);
        ProximalApproximation.BEHAVIOR.compute(unmasked, behavior, current, versions, currentVersion, rollout);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("loglinear", sequences.ragged(loglinear));
        output.set("linear", sequences.ragged(linear));
        output.set("rollout", sequences.ragged(rollout));
        return output;
    }
}
