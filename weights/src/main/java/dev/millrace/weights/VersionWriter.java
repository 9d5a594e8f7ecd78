package dev.millrace.weights;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.Serializer;
import org.jspecify.annotations.Nullable;

/**
 * Writes a version into a transaction that the caller has begun and will commit. It sends the chunks of the weights and
 * of the optimizer's state and, once the broker has acknowledged their offsets, the manifest. With a configured object
 * store, weights and optimizer's state are objects there, each stored before the manifest that names it is sent.
 *
 * <p>Between two anchors weights are deltas against their parent. Only some versions have the optimizer's state, and
 * always whole: only a starting learner reads it, and only the newest. A chain of deltas would save little, since a delta
 * takes 70 to 90 % of the second moment and 85 to 92 % of the first. A starting learner would have to read all of it.
 *
 * <p>Readers see the version only after the caller commits, and never if it aborts or crashes. Used by one thread, the
 * producer's owner.
 */
public final class VersionWriter {
    private final Producer<byte[], byte[]> producer;
    private final RunTopics topics;
    private final RunIdentity run;
    private final WeightsConfig config;
    private final Duration sendLimit;
    private final Optional<ObjectStore> weightStore;
    private final Optional<ObjectStore> stateStore;
    private final Serializer<WeightChunk> chunkSerializer;
    private final Serializer<PolicyVersion> manifestSerializer;
    /** Possible base of the next delta; null at first. */
    private @Nullable Base base;
    /** The last manifest, and the time of its record. */
    private @Nullable PolicyVersion sent;

    private long sentAtMs;

    /**
     * A version that was published.
     *
     * @param tensors copies of the published bytes, by name
     */
    private record Base(PolicyVersion published, List<TensorSpec> specs, Dtype dtype, Map<String, ByteBuffer> tensors) {
        boolean isLike(Parameters weights) {
            return specs.equals(weights.specs()) && dtype == weights.dtype();
        }
    }

    /** @param producer transactional and initialized; not closed */
    public VersionWriter(LogConnection connection, Producer<byte[], byte[]> producer, WeightsConfig config) {
        this.producer = producer;
        this.topics = connection.topics();
        this.run = connection.run();
        this.config = config;
        this.sendLimit = connection.limit(config.sendTimeoutMs());
        this.weightStore = ObjectStore.of(config.store());
        this.stateStore = ObjectStore.of(config.stateStore());
        this.chunkSerializer =
                AvroSerde.of(WeightChunk.class, connection.registry()).serializer();
        this.manifestSerializer =
                AvroSerde.of(PolicyVersion.class, connection.registry()).serializer();
    }

    /**
     * Sets the last committed version, so that the next one can be a delta against it. Without this call, and whenever
     * the chain since the last anchor has become {@code anchor_every} versions long, a version is written whole.
     *
     * @param weights of that version; copied
     */
    public void continueFrom(PolicyVersion published, Weights weights) {
        if (config.anchorEvery(VersionSize.of(weights)) == 1) {
            return;
        }
        if (weights.adapter().isPresent() && published.getAdapter() == null) {
            base = null; // the adapter's base: the next version is an adapter
            return;
        }
        Parameters values = weights.trained();
        // reuses the last buffers if the shape is the same
        Map<String, ByteBuffer> tensors = base != null && base.isLike(values) ? base.tensors() : new LinkedHashMap<>();
        for (TensorSpec spec : values.specs()) {
            ByteBuffer bytes = values.bytes(spec.name());
            // off-heap: on the heap, moving them would need twice the memory
            tensors.computeIfAbsent(spec.name(), absent -> ByteBuffer.allocateDirect(bytes.remaining()))
                    .clear()
                    .put(bytes)
                    .flip();
        }
        base = new Base(published, values.specs(), values.dtype(), tensors);
    }

    /**
     * Sends one version with the optimizer's state; returns when its chunks are acknowledged and its manifest is sent.
     *
     * <p>The buffers of the tensors are read during the call only.
     *
     * @return the manifest; the commit fails if it cannot be written
     * @throws KafkaException if a chunk or an object could not be written, or a chunk not within {@code send_timeout_ms}; the transaction
     *     must then be aborted
     */
    public PolicyVersion write(VersionFacts facts, Weights weights, AdamW.State optimizer) {
        return write(facts, weights, optimizer.steps(), Optional.of(optimizer));
    }

    /**
     * Sends one version without the optimizer's state, as {@link #write}. A learner that resumes from it relearns from
     * the newest version with a state.
     *
     * @param optimizerSteps taken so far
     */
    public PolicyVersion writeWithoutState(VersionFacts facts, Weights weights, long optimizerSteps) {
        return write(facts, weights, optimizerSteps, Optional.empty());
    }

    private PolicyVersion write(
            VersionFacts facts, Weights weights, long optimizerSteps, Optional<AdamW.State> optimizer) {
        Encoded encoded = encoded(facts, weights.trained(), config.anchorEvery(VersionSize.of(weights)));
        Optional<Encoded> state = optimizer.map(known -> Encoded.whole(OptimizerTensors.named(known)));
        Supplier<TensorLocation.Builder> weightLocation = begin(facts.version(), VersionObject.Part.WEIGHTS, encoded);
        Optional<Supplier<TensorLocation.Builder>> optimizerLocation =
                state.map(known -> begin(facts.version(), VersionObject.Part.OPTIMIZER, known));
        PolicyVersion manifest = PolicyVersion.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setPolicyId(run.policyId())
                .setVersion(facts.version())
                .setParentVersion(facts.parentVersion())
                .setBatchId(facts.batchId())
                .setShape(ShapeText.of(weights.shape()))
                .setTokenizerHash(facts.tokenizerHash())
                .setWeights(chained(weightLocation.get()).build())
                .setOptimizer(optimizerLocation
                        .map(location -> location.get().build())
                        .orElse(null))
                .setOptimizerSteps(optimizerSteps)
                .setRolloutsConsumed(facts.progress().rolloutsConsumed())
                .setTokensTrained(facts.progress().tokensTrained())
                .setControls(facts.controls())
                .setPublishedAtMs(facts.publishedAtMs())
                .setParentEpoch(facts.parentEpoch())
                .setAdapter(weights.adapter().map(VersionWriter::base).orElse(null))
                .build();
        sent = manifest;
        sentAtMs = System.currentTimeMillis();
        send(manifest, sentAtMs);
        return manifest;
    }

    /**
     * Sends the optimizer's state of a version that was published without it, and its manifest again with the state, so
     * that training can resume there.
     *
     * @return the new manifest
     * @throws KafkaException as {@link #write}
     */
    public PolicyVersion writeState(PolicyVersion published, AdamW.State optimizer) {
        if (published.getOptimizer() != null || published.getOptimizerSteps() != optimizer.steps()) {
            throw new IllegalArgumentException("the state after " + optimizer.steps() + " steps is not what version "
                    + published.getVersion() + " lacks, which was made by " + published.getOptimizerSteps());
        }
        Encoded state = Encoded.whole(OptimizerTensors.named(optimizer));
        TensorLocation location = begin(published.getVersion(), VersionObject.Part.OPTIMIZER, state)
                .get()
                .build();
        PolicyVersion manifest =
                PolicyVersion.newBuilder(published).setOptimizer(location).build();
        // compaction keeps only the copy, so its record must have the version's own time
        boolean isOurs = sent != null && sent.getVersion() == manifest.getVersion();
        send(manifest, isOurs ? sentAtMs : published.getPublishedAtMs());
        return manifest;
    }

    /** Stores a part, or starts sending it; the location is known once the broker acknowledges it. */
    private Supplier<TensorLocation.Builder> begin(long version, VersionObject.Part part, Encoded encoded) {
        boolean isWeights = part == VersionObject.Part.WEIGHTS;
        Optional<ObjectStore> store = isWeights ? weightStore : stateStore;
        if (store.isPresent()) {
            TensorLocation.Builder there = put(store.get(), version, part, encoded);
            return () -> there;
        }
        Sent sending = send(version, isWeights ? topics.weights() : topics.optimizerState(), encoded.tensors());
        List<TensorEntry> entries = entries(version, encoded.tensors()); // hashing while the broker writes
        return () -> location(sending, entries, encoded);
    }

    private void send(PolicyVersion manifest, long timestampMs) {
        String topic = topics.policyVersions();
        producer.send(new ProducerRecord<>(
                topic,
                PolicyPartition.of(run.policyId(), topic, producer.partitionsFor(topic)),
                timestampMs,
                VersionKey.of(manifest).bytes(),
                manifestSerializer.serialize(topic, manifest)));
    }

    /**
     * The encoded tensors of one version for the log.
     *
     * @param sha256 of the values of all tensors in their order; computed on demand if the tensors are whole
     */
    private record Encoded(List<EncodedTensor> tensors, Supplier<String> sha256) {
        static Encoded whole(List<NamedTensor> tensors) {
            return new Encoded(EncodedTensor.whole(tensors), () -> {
                ContentHash all = new ContentHash();
                tensors.forEach(tensor -> all.add(tensor.data()));
                return all.hex();
            });
        }
    }

    /**
     * Encodes tensor by tensor: for rounded weights a delta needs one tensor's values and its base, not a copy of all
     * values.
     */
    private Encoded encoded(VersionFacts facts, Parameters weights, int anchorEvery) {
        Base base = this.base;
        List<TensorSpec> specs = weights.specs();
        if (base == null
                || base.published().getVersion() != facts.parentVersion()
                || !base.isLike(weights)
                || facts.version() - anchorOf(base.published()) >= anchorEvery) {
            return Encoded.whole(NamedTensor.of(weights));
        }
        ContentHash all = new ContentHash();
        List<EncodedTensor> tensors = new ArrayList<>();
        for (TensorSpec spec : specs) {
            NamedTensor tensor = NamedTensor.of(weights, spec);
            ByteBuffer data = tensor.data();
            all.add(data);
            tensors.add(EncodedTensor.against(
                    Objects.requireNonNull(base.tensors().get(spec.name()), spec.name()), tensor, data));
        }
        String sha256 = all.hex();
        return new Encoded(List.copyOf(tensors), () -> sha256);
    }

    /** Returns the base of a run's adapters: its initial weights. */
    private static AdapterBase base(LoraAdapter adapter) {
        LoraShape shape = adapter.shape();
        return new AdapterBase(
                shape.rank(),
                shape.alpha(),
                shape.targetModules(),
                0L,
                adapter.base().sha256());
    }

    private static long anchorOf(PolicyVersion version) {
        Long anchor = version.getWeights().getAnchorVersion();
        return anchor == null ? version.getVersion() : anchor;
    }

    /** Names the base if there is a delta; a version with only whole tensors is an anchor. */
    private TensorLocation.Builder chained(TensorLocation.Builder location) {
        if (location.getTensors().stream().allMatch(tensor -> tensor.getEncoding() == TensorEncoding.RAW)) {
            return location;
        }
        PolicyVersion base =
                Objects.requireNonNull(this.base, "a delta is against one").published();
        return location.setBaseVersion(base.getVersion())
                .setBaseSha256(base.getWeights().getSha256())
                .setAnchorVersion(anchorOf(base));
    }

    /** Acknowledgements of the chunks on one topic. */
    private record Sent(String topic, int partition, List<Future<RecordMetadata>> acknowledgements) {}

    private Sent send(long version, String topic, List<EncodedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(run, version, config.chunkBytes());
        int partition = PolicyPartition.of(run.policyId(), topic, producer.partitionsFor(topic));
        List<Future<RecordMetadata>> acknowledgements = new ArrayList<>();
        for (EncodedTensor tensor : tensors) {
            for (WeightChunk chunk : chunks.of(tensor)) {
                acknowledgements.add(producer.send(new ProducerRecord<>(
                        topic, partition, VersionKey.of(chunk), chunkSerializer.serialize(topic, chunk))));
            }
        }
        return new Sent(topic, partition, acknowledgements);
    }

    private List<TensorEntry> entries(long version, List<EncodedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(run, version, config.chunkBytes());
        return tensors.stream().map(chunks::entry).toList();
    }

    private TensorLocation.Builder put(ObjectStore into, long version, VersionObject.Part part, Encoded encoded) {
        List<EncodedTensor> tensors = encoded.tensors();
        List<ByteBuffer> content = tensors.stream().map(EncodedTensor::data).toList();
        ContentHash hash = new ContentHash();
        content.forEach(hash::add);
        String sha256 = hash.hex();
        VersionObject object = new VersionObject(version, part, sha256);
        URI uri;
        try {
            uri = into.put(object.name(run), sha256, content);
        } catch (IOException e) {
            throw new KafkaException(
                    "version " + version + " could not be stored as " + object.name(run) + " in " + into + ": " + e, e);
        }
        return TensorLocation.newBuilder()
                .setTopic("")
                .setPartition(-1)
                .setFirstOffset(-1)
                .setLastOffset(-1)
                .setUri(uri.toString())
                .setTensors(tensors.stream().map(tensor -> tensor.entry(0)).toList())
                .setSha256(encoded.sha256().get());
    }

    private TensorLocation.Builder location(Sent sent, List<TensorEntry> entries, Encoded encoded) {
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (Future<RecordMetadata> acknowledgement : sent.acknowledgements()) {
            long offset = offsetOf(acknowledgement, sent);
            first = Math.min(first, offset);
            last = Math.max(last, offset);
        }
        return TensorLocation.newBuilder()
                .setTopic(sent.topic())
                .setPartition(sent.partition())
                .setFirstOffset(first)
                .setLastOffset(last)
                .setTensors(entries)
                .setSha256(encoded.sha256().get());
    }

    private long offsetOf(Future<RecordMetadata> acknowledgement, Sent sent) {
        try {
            return acknowledgement
                    .get(sendLimit.toMillis(), TimeUnit.MILLISECONDS)
                    .offset();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof KafkaException cause) {
                throw cause;
            }
            throw new KafkaException("a chunk could not be written to " + sent.topic(), e.getCause());
        } catch (TimeoutException e) {
            throw new KafkaException(
                    "a chunk was not acknowledged by " + sent.topic() + "-" + sent.partition() + " within "
                            + sendLimit.toMillis() + " ms (send_timeout_ms)",
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while chunks were being written to " + sent.topic(), e);
        }
    }
}
