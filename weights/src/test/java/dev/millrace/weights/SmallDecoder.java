package dev.millrace.weights;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;

/** The decoder and the run that the tests publish. */
final class SmallDecoder {
    static final RunIdentity RUN = new RunIdentity("run-1", 0, "policy");
    static final DecoderShape SHAPE = new DecoderShape(11, 8, 1, 2, 1, 4, 12, 32, 10_000, 1e-6, true, true);

    static { // Avro copies records with enums only once something has said that their classes are to be trusted
        AvroSerde.of(PolicyVersion.class, new InMemorySchemaRegistry());
    }

    private SmallDecoder() {}
}
