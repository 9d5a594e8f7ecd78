package dev.millrace.topology.ingress;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.OwnershipCheck;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.ManifestChain;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;

/** Reads the manifests of policy versions, and their tombstones. */
public final class VersionRecordReader implements RecordReader<AssemblyArrival> {
    private final RecordDecoding<PolicyVersion> decoding;
    private final RunIdentity run;
    private final OwnershipCheck ownership;

    public VersionRecordReader(String topic, SchemaRegistry registry, RunIdentity run) {
        this.decoding = new RecordDecoding<>(
                topic, AvroSerde.of(PolicyVersion.class, registry).deserializer());
        this.run = run;
        this.ownership = new OwnershipCheck(run);
    }

    @Override
    public Optional<AssemblyArrival> read(Record<byte[], byte[]> raw, int partition, long offset)
            throws RefusedException {
        if (raw.value() == null && raw.key() != null) {
            return VersionKey.parse(raw.key())
                    .filter(key -> key.equals(VersionKey.of(run, key.version())))
                    .map(key -> new VersionDeletion(key.version(), raw.timestamp(), offset));
        }
        PolicyVersion version = decoding.decode(raw.value());
        try {
            ownership.requireOurs(version.getRunId(), version.getEpoch());
            ownership.requirePolicy(version.getPolicyId());
            OwnershipCheck.requireKey(raw.key(), VersionKey.of(version).toString(), "policy_id/epoch/version");
            if (version.getVersion() < 0) {
                throw new RefusedException(
                        RefusalReason.IDENTITY, "version", "version must be at least 0: " + version.getVersion());
            }
            long parent = ManifestChain.Link.of(version).dueParent();
            if (version.getParentVersion() != parent) {
                throw new RefusedException(
                        RefusalReason.IDENTITY,
                        "parent_version",
                        "parent_version of version " + version.getVersion() + " must be " + parent + ": "
                                + version.getParentVersion());
            }
        } catch (RefusedException e) {
            throw new RefusedException(e.refusal().about(version.getRunId(), version.getEpoch(), ""));
        }
        return Optional.of(new VersionArrival(version.getVersion(), version.getBatchId(), raw.timestamp(), offset));
    }
}
