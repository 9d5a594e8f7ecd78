package dev.millrace.weights;

import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes a version into a transaction that the caller has begun and will commit: the chunks of the weights, those of
 * the optimiser's state, and, once the broker has said where these lie, the manifest.
 *
 * <p>Until the caller commits, no reader sees any of it; if it aborts or dies, none ever does. Used by one thread, the
 * producer's owner.
 */
public final class VersionWriter {
    private final Producer<byte[], byte[]> producer;
    private final RunTopics topics;
    private final RunIdentity run;
    private final WeightsConfig config;
    private final Serializer<WeightChunk> chunkSerializer;
    private final Serializer<PolicyVersion> manifestSerializer;

    /** @param producer transactional and initialised; stays the caller's */
    public VersionWriter(LogConnection connection, Producer<byte[], byte[]> producer, WeightsConfig config) {
        this.producer = producer;
        this.topics = connection.topics();
        this.run = connection.run();
        this.config = config;
        this.chunkSerializer = AvroSerde.of(WeightChunk.class, connection.registry()).serializer();
        this.manifestSerializer = AvroSerde.of(PolicyVersion.class, connection.registry()).serializer();
    }

    /**
     * Sends one version; returns when its chunks are acknowledged and its manifest is on the way.
     *
     * <p>The buffers of the tensors are read during the call only.
     *
     * @return the manifest; the commit fails if it cannot be written
     * @throws KafkaException if a chunk could not be written, or not within {@code send_timeout_ms}; the transaction
     *     must then be aborted
     */
    public PolicyVersion write(VersionFacts facts, Weights weights, AdamW.State optimizer) {
        List<NamedTensor> weightTensors = NamedTensor.of(weights.tensors(), "");
        List<NamedTensor> optimizerTensors = OptimizerTensors.named(optimizer);
        Sent sentWeights = send(facts.version(), topics.weights(), weightTensors);
        Sent sentOptimizer = send(facts.version(), topics.optimizerState(), optimizerTensors);
        // hashing while the broker writes
        List<TensorEntry> weightEntries = entries(facts.version(), weightTensors);
        List<TensorEntry> optimizerEntries = entries(facts.version(), optimizerTensors);
        producer.flush();
        PolicyVersion manifest = PolicyVersion.newBuilder()
            .setRunId(run.runId())
            .setEpoch(run.epoch())
            .setPolicyId(run.policyId())
            .setVersion(facts.version())
            .setParentVersion(facts.parentVersion())
            .setBatchId(facts.batchId())
            .setShape(ShapeText.of(weights.shape()))
            .setTokenizerHash(facts.tokenizerHash())
            .setWeights(location(sentWeights, weightEntries, weightTensors))
            .setOptimizer(location(sentOptimizer, optimizerEntries, optimizerTensors))
            .setOptimizerSteps(optimizer.steps())
            .setRolloutsConsumed(facts.rolloutsConsumed())
            .setTokensTrained(facts.tokensTrained())
            .setPublishedAtMs(facts.publishedAtMs())
            .build();
        String topic = topics.policyVersions();
        producer.send(new ProducerRecord<>(topic, PolicyPartition.of(run.policyId(), topic, producer.partitionsFor(topic)),
            key(run.policyId() + "/" + facts.version()), manifestSerializer.serialize(topic, manifest)));
        return manifest;
    }

    /** The acknowledgements of the chunks that went to one topic. */
    private record Sent(String topic, int partition, List<Future<RecordMetadata>> acknowledgements) {
    }

    private Sent send(long version, String topic, List<NamedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(run, version, config.chunkBytes());
        int partition = PolicyPartition.of(run.policyId(), topic, producer.partitionsFor(topic));
        List<Future<RecordMetadata>> acknowledgements = new ArrayList<>();
        for (NamedTensor tensor : tensors) {
            for (WeightChunk chunk : chunks.of(tensor)) {
                acknowledgements.add(producer.send(new ProducerRecord<>(
                    topic, partition, key(TensorChunks.key(chunk)), chunkSerializer.serialize(topic, chunk))));
            }
        }
        return new Sent(topic, partition, acknowledgements);
    }

    private static byte[] key(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private List<TensorEntry> entries(long version, List<NamedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(run, version, config.chunkBytes());
        return tensors.stream().map(chunks::entry).toList();
    }

    private TensorLocation location(Sent sent, List<TensorEntry> entries, List<NamedTensor> tensors) {
        ContentHash all = new ContentHash();
        tensors.forEach(tensor -> all.add(tensor.data()));
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
            .setSha256(all.hex())
            .build();
    }

    private long offsetOf(Future<RecordMetadata> acknowledgement, Sent sent) {
        try {
            return acknowledgement.get(config.sendTimeoutMs(), TimeUnit.MILLISECONDS).offset();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof KafkaException cause) {
                throw cause;
            }
            throw new KafkaException("a chunk could not be written to " + sent.topic(), e.getCause());
        } catch (TimeoutException e) {
            throw new KafkaException("a chunk was not acknowledged by " + sent.topic() + "-" + sent.partition() + " within "
                + config.sendTimeoutMs() + " ms (send_timeout_ms)", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while chunks were being written to " + sent.topic(), e);
        }
    }
}
