package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.EmbeddingGradient;
import dev.millrace.policy.decoder.HeadGradient;
import dev.millrace.policy.decoder.LayerGradient;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Session;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The compiled graphs of a gradient: one layer forward, one layer back, and the head both ways. Thread-safe. */
final class GradientGraphs implements AutoCloseable {
    private final Engine engine;
    private final DecoderShape shape;
    private final boolean isHeadTrained;
    private final LayerGradient layer;
    private final Session forward;
    private final Session backward;
    private final @Nullable Session lookup;
    private final @Nullable Session embeddingSums;
    private final Map<Vocabulary, Head> heads = new EnumMap<>(Vocabulary.class);

    record Head(HeadGradient gradient, Session session) {}

    GradientGraphs(Engine engine, DecoderShape shape, Optional<LoraShape> lora, Activations activations) {
        this.engine = engine;
        this.shape = shape;
        this.isHeadTrained = lora.isEmpty();
        this.layer = LayerGradient.of(shape, lora, activations, !engine.isInPlace());
        this.forward = engine.compileForAnySize(layer.forward().model());
        this.backward = engine.compileForAnySize(layer.backward().model());
        boolean onDevice = !engine.isInPlace();
        this.lookup = onDevice
                ? engine.compileForAnySize(EmbeddingGradient.lookup(shape).model())
                : null;
        this.embeddingSums = onDevice && isHeadTrained
                ? engine.compileForAnySize(EmbeddingGradient.sums(shape).model())
                : null;
        head(Vocabulary.WHOLE);
    }

    LayerGradient layer() {
        return layer;
    }

    Session forward() {
        return forward;
    }

    Session backward() {
        return backward;
    }

    /** On a device alone. */
    Session lookup() {
        return Objects.requireNonNull(lookup);
    }

    /** On a device alone, where the embedding is trained. */
    Session embeddingSums() {
        return Objects.requireNonNull(embeddingSums);
    }

    /** Compiled when it is first needed. */
    synchronized Head head(Vocabulary vocabulary) {
        return heads.computeIfAbsent(vocabulary, absent -> {
            HeadGradient gradient = HeadGradient.of(shape, isHeadTrained, vocabulary, !engine.isInPlace());
            return new Head(gradient, engine.compileForAnySize(gradient.graph().model()));
        });
    }

    @Override
    public synchronized void close() {
        try {
            forward.close();
            backward.close();
            if (lookup != null) {
                lookup.close();
            }
            if (embeddingSums != null) {
                embeddingSums.close();
            }
            for (Head head : heads.values()) {
                head.session().close();
            }
        } catch (OrtException e) {
            throw new InferenceException("could not close the session: " + e.getMessage(), e);
        }
    }
}
