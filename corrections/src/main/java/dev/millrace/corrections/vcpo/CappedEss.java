package dev.millrace.corrections.vcpo;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.OptionalDouble;
import java.util.Set;

/** The sample size beside the weights of an algorithm, which say where they are truncated. */
record CappedEss(Ess ess, OptionalDouble cap) implements Stage {
    @Override
    public String name() {
        return ess.name();
    }

    @Override
    public CorrectionUnit unit() {
        return ess.unit();
    }

    @Override
    public Set<StageInput> inputs() {
        return ess.inputs();
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        return ess.apply(this, batch, cap);
    }
}
