package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.m2po.SecondMoment;
import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.ratio.LogRatio;

/** {@code m2po}: the second-moment mask over all trained tokens, as AReaL applies it. */
final class M2poFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "m2po";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        CaseSequences sequences = golden.sequences();
        TokenBatch batch = new TokenBatch(sequences.offsets(), sequences.mask());
        LogRatio ratio = LogRatio.anchor(sequences.floats("old_logprobs"), sequences.floats("rollout_logprobs"));
        byte[] mask = new byte[batch.tokenCount()];
        SecondMoment moment = new SecondMomentMask(golden.config().number("m2_threshold")).compute(batch, ratio, mask);
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.set("mask", sequences.ragged(mask));
        output.put("num_masked", moment.masked());
        return output;
    }
}
