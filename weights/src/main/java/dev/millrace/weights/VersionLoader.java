package dev.millrace.weights;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.LongFunction;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads and verifies weights and optimizer's state of published versions, from the log or an object store.
 *
 * <p>As thread-safe as its log. Failed loads have no side effects.
 */
public final class VersionLoader {
    private static final Logger LOG = LoggerFactory.getLogger(VersionLoader.class);

    private final LongFunction<PolicyVersion> manifests;
    private final ChunkLog log;
    private final Deserializer<WeightChunk> chunks;
    private final StoredTensors storedWeights;
    private final StoredTensors storedState;
    private final VersionChain chain;

    /**
     * @param manifests by version; throws {@link VersionUnavailableException} for an unknown one
     * @param log source of chunks; closed by its owner
     * @param config locates versions that are not on the log
     */
    public VersionLoader(
            LongFunction<PolicyVersion> manifests, ChunkLog log, SchemaRegistry registry, WeightsConfig config) {
        this.manifests = manifests;
        this.log = log;
        this.chunks = AvroSerde.of(WeightChunk.class, registry).deserializer();
        this.storedWeights = new StoredTensors("weights.store", ObjectStore.of(config.store()));
        this.storedState = new StoredTensors(
                config.optimizerStore().isEmpty() ? "weights.store" : "weights.optimizer_store",
                ObjectStore.of(config.stateStore()));
        this.chain = new VersionChain(
                manifests,
                (manifest, location, expected, dtype, base, sink) ->
                        read(storedWeights, manifest, location, expected, dtype, base, sink));
    }

    /**
     * The weights of a version in new buffers that belong to the caller, made from others that are at hand where that
     * spares reading: those of the version before it, and a version costs one delta.
     *
     * @param atHand loaded weights of a version, or null; read-only
     * @throws VersionUnavailableException if the version, its chunks, or those of a version in its delta chain are
     * missing
     * @throws CorruptVersionException if one of them contradicts its manifest, or the tensors do not fit the shape
     */
    public Weights load(long version, LongFunction<@Nullable Weights> atHand) {
        PolicyVersion manifest = manifests.apply(version);
        Weights weights = adapterOf(manifest)
                .map(lora -> adapted(manifest, lora, atHand))
                .orElseGet(() -> Weights.zeros(shapeOf(manifest), dtypeOf(manifest)));
        chain.load(manifest, weights, atHand);
        weights.merge();
        return weights;
    }

    /** Returns an adapter's base with an adapter of zeros; adapters of the same base share it. */
    private Weights adapted(PolicyVersion manifest, LoraShape lora, LongFunction<@Nullable Weights> atHand) {
        AdapterBase of = manifest.getAdapter();
        AtomicReference<@Nullable Weights> loaded = new AtomicReference<>();
        FrozenWeights base = Shared.BASES.get(of.getBaseSha256(), () -> {
            Weights weights = baseOf(manifest, of, atHand);
            loaded.set(weights);
            return new FrozenWeights(weights, of.getBaseSha256());
        });
        Weights own = loaded.get(); // frees its read buffer
        try {
            return (own == null ? base.thawed() : own).with(LoraAdapter.zeros(lora, base));
        } catch (IllegalArgumentException e) {
            throw new CorruptVersionException(
                    "version " + manifest.getVersion() + " is not an adapter of its base: " + e.getMessage());
        }
    }

    private Weights baseOf(PolicyVersion manifest, AdapterBase of, LongFunction<@Nullable Weights> atHand) {
        String says = "version " + manifest.getVersion() + " is an adapter upon version " + of.getBaseVersion();
        try {
            PolicyVersion base = manifests.apply(of.getBaseVersion());
            if (base.getAdapter() != null
                    || !base.getWeights().getSha256().equals(of.getBaseSha256())
                    || !shapeOf(base).equals(shapeOf(manifest))) {
                throw new CorruptVersionException(says + " with the weights " + of.getBaseSha256() + ", and that has "
                        + base.getWeights().getSha256() + " and the shape " + base.getShape()
                        + "; an adapter applies to its own base only");
            }
            return load(of.getBaseVersion(), atHand);
        } catch (VersionUnavailableException e) {
            throw new VersionUnavailableException(says + ", which is not available: " + e.getMessage(), e);
        }
    }

    /**
     * Loads the optimizer's state after the step that made a version, into new buffers owned by the caller.
     *
     * @throws VersionUnavailableException as {@link #load(long, LongFunction)}, or if the version was published without it
     * @throws CorruptVersionException as {@link #load(long, LongFunction)}
     */
    public AdamW.State loadOptimizer(long version) {
        PolicyVersion manifest = manifests.apply(version);
        if (manifest.getOptimizer() == null && Checkpoints.is(manifest)) {
            return OptimizerTensors.zero(trainedBy(manifest), 0, false);
        }
        if (manifest.getOptimizer() == null) {
            throw new VersionUnavailableException("version " + version
                    + " was published without the optimiser's state, so training cannot continue from it"
                    + " alone");
        }
        boolean hasMasters = dtypeOf(manifest) != Dtype.F32 && manifest.getOptimizerSteps() > 0;
        AdamW.State state = OptimizerTensors.zero(trainedBy(manifest), manifest.getOptimizerSteps(), hasMasters);
        read(
                storedState,
                manifest,
                manifest.getOptimizer(),
                OptimizerTensors.specs(state),
                Dtype.F32,
                name -> {
                    throw new CorruptVersionException("version " + version
                            + " has a delta in the optimiser's state, which is always written whole: " + name);
                },
                (name, data) -> OptimizerTensors.load(state, name, data));
        return state;
    }

    /** The trained part of a version. */
    private static List<TensorSpec> trainedBy(PolicyVersion manifest) {
        DecoderShape shape = shapeOf(manifest);
        return adapterOf(manifest).map(lora -> lora.tensors(shape)).orElseGet(shape::tensors);
    }

    /** The adapter that a manifest declares; empty for full weights. */
    static Optional<LoraShape> adapterOf(PolicyVersion manifest) {
        AdapterBase of = manifest.getAdapter();
        if (of == null) {
            return Optional.empty();
        }
        try {
            LoraShape lora = new LoraShape(of.getRank(), of.getAlpha(), of.getTargetModules());
            lora.tensors(shapeOf(manifest));
            return Optional.of(lora);
        } catch (IllegalArgumentException e) {
            throw new CorruptVersionException(
                    "version " + manifest.getVersion() + " declares no usable adapter: " + e.getMessage());
        }
    }

    static DecoderShape shapeOf(PolicyVersion manifest) {
        try {
            return ShapeText.parse(manifest.getShape());
        } catch (IllegalArgumentException e) {
            throw new CorruptVersionException(
                    "version " + manifest.getVersion() + " declares no usable shape: " + e.getMessage());
        }
    }

    static Dtype dtypeOf(PolicyVersion manifest) {
        List<TensorEntry> tensors = manifest.getWeights().getTensors();
        String named = tensors.isEmpty() ? Dtype.F32.name() : tensors.get(0).getDtype();
        return Dtype.named(named)
                .orElseThrow(() ->
                        new CorruptVersionException("version " + manifest.getVersion() + " is of the type " + named
                                + ", which this release does not know; it knows " + Arrays.toString(Dtype.values())
                                + ", so update it"));
    }

    private void read(
            StoredTensors stored,
            PolicyVersion manifest,
            TensorLocation location,
            List<TensorSpec> expected,
            Dtype dtype,
            Function<String, ByteBuffer> base,
            BiConsumer<String, ByteBuffer> sink) {
        PublishedTensors published = new PublishedTensors(manifest, location);
        published.require(expected, dtype);
        TensorVerifier verifier = new TensorVerifier(published, base, sink);
        if (location.getUri() == null) {
            TensorAssembly assembly = new TensorAssembly(published, verifier::accept);
            log.read(
                    manifest,
                    location,
                    (topic, partition, offset, value) -> accept(assembly, topic, partition, offset, value));
            assembly.finish();
        } else {
            stored.read(published, verifier::accept);
        }
        verifier.finish();
    }

    private void accept(TensorAssembly assembly, String topic, int partition, long offset, byte[] value) {
        try {
            assembly.accept(chunks.deserialize(topic, value), offset);
        } catch (MalformedRecordException e) {
            // not written by a learner; if a real chunk is missing because of it, the assembly names that chunk
            LOG.warn("skipped {}-{}@{}: {}", topic, partition, offset, e.getMessage());
        }
    }

    /** Reads a version's part from an object store, tensor by tensor in the manifest's order. */
    static final class StoredTensors {
        private static final long MOST_BYTES = Integer.MAX_VALUE - 8; // of a Java array

        private final String key;
        private final Optional<ObjectStore> store;

        /** @param store empty if none is configured; reading then throws */
        StoredTensors(String key, Optional<ObjectStore> store) {
            this.key = key;
            this.store = store;
        }

        /**
         * Passes on the object's tensors in order, in heap buffers owned by the receiver; not verified yet.
         *
         * @throws VersionUnavailableException if the object is missing or unreadable
         * @throws CorruptVersionException if it is shorter or longer than the manifest says
         * @throws IllegalStateException if this role was not given the store
         */
        void read(PublishedTensors published, BiConsumer<String, ByteBuffer> taker) {
            long version = published.manifest().getVersion();
            URI uri = uri(published);
            ObjectStore from = store.orElseThrow(() -> new IllegalStateException("version " + version + " lies at "
                    + uri + ", but " + key + " is kafka here; give every role of the run the same " + key));
            try (InputStream in = from.get(uri)) {
                for (TensorEntry entry : published.location().getTensors()) {
                    if (PublishedTensors.encodedBytes(entry) > MOST_BYTES) {
                        throw published.corrupt("has " + entry.getName() + " in " + PublishedTensors.encodedBytes(entry)
                                + " bytes, and a tensor has at most " + MOST_BYTES);
                    }
                    byte[] data = in.readNBytes((int) PublishedTensors.encodedBytes(entry));
                    if (data.length < PublishedTensors.encodedBytes(entry)) {
                        throw published.corrupt("is incomplete: it ends within " + entry.getName() + ", after "
                                + data.length + " of " + PublishedTensors.encodedBytes(entry) + " bytes");
                    }
                    taker.accept(entry.getName(), ByteBuffer.wrap(data));
                }
                if (in.read() != -1) {
                    throw published.corrupt("is longer than its manifest says");
                }
            } catch (NoSuchFileException e) {
                throw new VersionUnavailableException(
                        "version " + version + " is no longer kept: there is no " + uri, e);
            } catch (IOException e) {
                throw new VersionUnavailableException(
                        "version " + version + " cannot be read from " + uri + ": " + e, e);
            } catch (IllegalArgumentException e) {
                throw new IllegalStateException("version " + version + ": " + e.getMessage(), e);
            }
        }

        private static URI uri(PublishedTensors published) {
            try {
                return URI.create(published.location().getUri());
            } catch (IllegalArgumentException e) {
                throw published.corrupt("has an invalid address: " + e.getMessage());
            }
        }
    }
}
