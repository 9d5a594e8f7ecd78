package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.schemas.run.RunIdentity;

/** The decoder and the run that the tests publish. */
final class SmallDecoder {
    static final RunIdentity RUN = new RunIdentity("run-1", 0, "policy");
    static final DecoderShape SHAPE = new DecoderShape(11, 8, 1, 2, 1, 4, 12, 32, 10_000, 1e-6, true, true);

    private SmallDecoder() {
    }
}
