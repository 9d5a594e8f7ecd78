package dev.millrace.replay.archive;

import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.ManifestChain;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.ChunkLog;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionLoader;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.LongFunction;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

public final class RecordedVersions implements AutoCloseable {
    private static final int MANIFESTS_AT_HAND = 64;

    private final RecordedRun run;
    private final AvroRecordDeserializer<PolicyVersion> deserializer;
    private final RecordFetcher fetcher;
    private final VersionLoader reader;
    private final NavigableMap<Long, Place> places = new TreeMap<>();
    /** Start version of the step, by batch. */
    private final Map<Long, Long> beginnings = new HashMap<>();

    private final Map<Long, PolicyVersion> atHand = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, PolicyVersion> eldest) {
            return size() > MANIFESTS_AT_HAND;
        }
    };

    /** Position and identity of a manifest, its batch and start version. */
    private record Place(TopicPartition partition, long offset, String sha256, OptionalLong batchId, long parent) {}

    /**
     * Reads every manifest once.
     *
     * @param config names the store of versions that are not on the log
     * @throws ArchiveException without {@code policy-versions}, or with unresolved contradictions
     */
    public RecordedVersions(RecordedRun run, WeightsConfig config) {
        this.run = run;
        this.deserializer = AvroSerde.of(PolicyVersion.class, run.registry()).deserializer();
        this.reader = new VersionLoader(this::manifest, new RecordedChunks(), run.registry(), config);
        ReadManifests read = new ReadManifests();
        run.forEach(run.topics().policyVersions(), read::take);
        read.end();
        this.fetcher = run.fetcher();
    }

    /** Collects manifests along the chain of the epoch and its ancestors. */
    private final class ReadManifests {
        private final Map<Integer, ManifestChain<Place>> chains = new HashMap<>();
        /** By version: records off the chain, unless the chain's own was written again. */
        private final NavigableMap<Long, Place> others = new TreeMap<>();

        ReadManifests() {
            EpochLineage lineage = run.lineage();
            chains.put(run.run().epoch(), new ManifestChain<>(lineage.parent()));
            for (EpochLineage.Ancestor ancestor : run.lineage().ancestors()) {
                lineage = lineage.ofParent();
                chains.put(ancestor.epoch(), new ManifestChain<>(lineage.parent()));
            }
        }

        void take(ConsumerRecord<byte[], byte[]> record) {
            if (record.value() == null) {
                VersionKey.parse(record.key())
                        .filter(key -> key.policyId().equals(run.run().policyId()))
                        .ifPresent(key -> Optional.ofNullable(chains.get(key.epoch()))
                                .ifPresent(chain -> chain.deleted(key.version())));
            }
            ours(record).ifPresent(manifest -> {
                long version = manifest.getVersion();
                boolean isOfStep = manifest.getBatchId() >= 0 && manifest.getParentEpoch() == null;
                Place place = new Place(
                        new TopicPartition(record.topic(), record.partition()),
                        record.offset(),
                        manifest.getWeights().getSha256(),
                        isOfStep ? OptionalLong.of(manifest.getBatchId()) : OptionalLong.empty(),
                        manifest.getParentVersion());
                ManifestChain.Taken<Place> taken = Objects.requireNonNull(chains.get(manifest.getEpoch()))
                        .add(ManifestChain.Link.of(manifest), place);
                places.putAll(taken.versions());
                Place known = places.get(version);
                if (taken.whyNot().isPresent()) {
                    others.put(version, place);
                } else if (known != null && known.sha256().equals(place.sha256())) {
                    places.put(version, place); // the last copy has the optimizer's state
                    others.remove(version);
                }
            });
        }

        /** @throws ArchiveException if a key's weights differ from the chain's */
        void end() {
            chains.values().forEach(chain -> {
                places.putAll(chain.beginWithOldest());
                chain.settle();
            });
            others.keySet().retainAll(places.keySet());
            others.forEach((version, other) -> {
                Place place = Objects.requireNonNull(places.get(version));
                throw new ArchiveException("version " + version + " was published twice, at " + place.partition() + "@"
                        + place.offset() + " and @" + other.offset()
                        + ", with different weights: two learners wrote to one run");
            });
            places.values().forEach(place -> place.batchId().ifPresent(batch -> beginnings.put(batch, place.parent())));
        }
    }

    private long firstOfEpoch() {
        return run.lineage().parent().map(EpochLineage.Ancestor::version).orElse(0L);
    }

    /** Empty for tombstones and foreign records. */
    private Optional<PolicyVersion> ours(ConsumerRecord<byte[], byte[]> record) {
        return TopicScan.readable(deserializer, record)
                .filter(manifest -> (run.run().owns(manifest.getRunId(), manifest.getEpoch())
                                || run.run().runId().equals(manifest.getRunId())
                                        && run.lineage().inherits(manifest.getEpoch(), manifest.getVersion()))
                        && run.run().policyId().equals(manifest.getPolicyId()));
    }

    public OptionalLong oldest() {
        Long oldest = places.ceilingKey(firstOfEpoch());
        return oldest == null ? OptionalLong.empty() : OptionalLong.of(oldest);
    }

    public OptionalLong newest() {
        return places.isEmpty() ? OptionalLong.empty() : OptionalLong.of(places.lastKey());
    }

    public boolean isKnown(long version) {
        return places.containsKey(version);
    }

    /** Start version of the step on a batch; empty if none is recorded. */
    public OptionalLong beginningOf(long batchId) {
        Long version = beginnings.get(batchId);
        return version == null ? OptionalLong.empty() : OptionalLong.of(version);
    }

    /** @throws VersionUnavailableException if it is missing */
    public synchronized PolicyVersion manifest(long version) {
        PolicyVersion manifest = atHand.get(version);
        if (manifest != null) {
            return manifest;
        }
        Place place = places.get(version);
        if (place == null) {
            throw new VersionUnavailableException("version " + version + " is not among those that are recorded: "
                    + (places.isEmpty() ? "there are none" : places.firstKey() + " to " + places.lastKey()));
        }
        manifest = fetcher.fetch(place.partition(), new long[] {place.offset()}).stream()
                .findFirst()
                .flatMap(this::ours)
                .orElseThrow(() -> new VersionUnavailableException("the manifest of version " + version
                        + " is no longer at " + place.partition() + "@" + place.offset()));
        atHand.put(version, manifest);
        return manifest;
    }

    public DecoderShape shape() {
        return PolicyFeed.shapeOf(
                manifest(newest().orElseThrow(() -> new VersionUnavailableException("no version is recorded"))));
    }

    /**
     * Weights of a version in new buffers owned by the caller.
     *
     * @param others loaded weights of a version, or null; not written
     * @throws VersionUnavailableException if log or archive lack them
     * @throws CorruptVersionException if they differ from the manifest
     */
    public Weights load(long version, LongFunction<Weights> others) {
        return reader.load(version, others);
    }

    public AdamW.State loadOptimizer(long version) {
        return reader.loadOptimizer(version);
    }

    /** Weight chunks by the run's cursors. */
    private final class RecordedChunks implements ChunkLog {
        @Override
        public void read(PolicyVersion manifest, TensorLocation location, Taker taker) {
            TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
            Range range;
            try {
                range = run.range(partition);
            } catch (ArchiveException | IllegalArgumentException e) {
                throw new VersionUnavailableException(
                        "version " + manifest.getVersion() + " cannot be read: " + e.getMessage(), e);
            }
            if (location.getFirstOffset() < range.from() || location.getLastOffset() >= range.end()) {
                throw new VersionUnavailableException("version " + manifest.getVersion()
                        + " is no longer stored: its chunks were on " + partition + " at offsets "
                        + location.getFirstOffset() + " to "
                        + location.getLastOffset() + ", and the topic now has offsets from " + range.from()
                        + " to "
                        + (range.end() - 1)
                        + "; weights.keep_versions sets how many are kept");
            }
            try (RecordCursor cursor = run.read(partition, location.getFirstOffset())) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent() && next.get().offset() <= location.getLastOffset();
                        next = cursor.next()) {
                    taker.take(
                            next.get().topic(),
                            next.get().partition(),
                            next.get().offset(),
                            next.get().value());
                }
            }
        }
    }

    @Override
    public void close() {
        fetcher.close();
    }
}
