package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Versions 0 to 5 with anchors 0 and 4, in memory. */
class VersionChainTest {
    private final List<Weights> truth = new ArrayList<>();
    private final Map<Long, PolicyVersion> manifests = new HashMap<>();
    private final Map<Long, Map<String, ByteBuffer>> stored = new HashMap<>();
    private final List<Long> read = new ArrayList<>();
    private final VersionChain chain =
            new VersionChain(this::manifest, (manifest, location, expected, dtype, base, sink) -> {
                read.add(manifest.getVersion());
                if (!stored.containsKey(manifest.getVersion())) {
                    throw new VersionUnavailableException("version " + manifest.getVersion() + " is gone");
                }
                PublishedTensors published = new PublishedTensors(manifest, location);
                published.require(expected, dtype);
                TensorVerifier verifier = new TensorVerifier(published, base, sink);
                stored.get(manifest.getVersion()).forEach(verifier::accept);
                verifier.finish();
            });

    @BeforeEach
    void publish() {
        Weights weights = Weights.random(SmallDecoder.SHAPE, 9);
        for (long version = 0; version < 6; version++) {
            var embedding = weights.tensor("model.embed_tokens.weight");
            for (int i = 0; i < embedding.capacity(); i++) {
                embedding.put(i, embedding.get(i) * 1.0001f);
            }
            truth.add(weights.copy());
            boolean anchor = version % 4 == 0;
            Weights base = anchor ? null : truth.get((int) version - 1);
            List<TensorEntry> entries = new ArrayList<>();
            Map<String, ByteBuffer> data = new LinkedHashMap<>();
            ContentHash all = new ContentHash();
            for (NamedTensor tensor : NamedTensor.of(weights.copy().trained())) {
                EncodedTensor encoded = anchor
                        ? EncodedTensor.whole(tensor)
                        : EncodedTensor.against(base.bytes(tensor.name()), tensor, tensor.data());
                entries.add(encoded.entry(1));
                data.put(tensor.name(), encoded.data());
                all.add(tensor.data());
            }
            stored.put(version, data);
            TensorLocation.Builder location = TensorLocation.newBuilder()
                    .setTopic("weights")
                    .setPartition(0)
                    .setFirstOffset(0)
                    .setLastOffset(1)
                    .setTensors(entries)
                    .setSha256(all.hex());
            if (!anchor) {
                location.setBaseVersion(version - 1)
                        .setAnchorVersion(version / 4 * 4)
                        .setBaseSha256(manifests.get(version - 1).getWeights().getSha256());
            }
            manifests.put(version, Manifests.of(version, location.build()));
        }
    }

    @Test
    void shouldBeginAtTheAnchorAndApplyTheChain() {
        for (int version = 0; version < 6; version++) {
            read.clear();
            assertSame(load(version), truth.get(version));
            assertThat(read)
                    .as("version %d", version)
                    .isEqualTo(List.of(
                                    List.of(0L),
                                    List.of(0L, 1L),
                                    List.of(0L, 1L, 2L),
                                    List.of(0L, 1L, 2L, 3L),
                                    List.of(4L),
                                    List.of(4L, 5L))
                            .get(version));
        }
    }

    @Test
    void shouldBeginAtWhatIsAtHand() {
        Weights before = truth.get(2).copy();
        Weights found = Weights.zeros(SmallDecoder.SHAPE);
        chain.load(manifest(3), found, version -> version == 2 ? before : null);

        assertSame(found, truth.get(3));
        assertThat(read).containsExactly(3L);
        assertSame(before, truth.get(2));
    }

    @Test
    void shouldNameTheLinkThatIsMissing() {
        stored.remove(1L);
        assertThatThrownBy(() -> load(3))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 3 cannot be put together without its link, version 1: version 1 is gone");
        assertSame(load(5), truth.get(5));

        manifests.remove(2L);
        assertThatThrownBy(() -> load(3))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 3 cannot be put together without its link, version 2: no manifest 2");
    }

    @Test
    void shouldNameTheLinkThatIsWrong() {
        ByteBuffer bytes = stored.get(1L).get("model.embed_tokens.weight");
        bytes.put(bytes.limit() - 1, (byte) (bytes.get(bytes.limit() - 1) ^ 1));

        assertThatThrownBy(() -> load(2))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageStartingWith(
                        "version 2 cannot be put together, for its link, version 1, is wrong: version 1 of policy")
                .hasMessageContaining("model.embed_tokens.weight");
        assertSame(load(0), truth.get(0));
    }

    @Test
    void shouldRefuseAnotherBaseThanItsOwn() {
        PolicyVersion one = manifests.get(1L);
        manifests.put(
                1L,
                Manifests.of(
                        1,
                        TensorLocation.newBuilder(one.getWeights())
                                .setSha256("f00d")
                                .build()));

        assertThatThrownBy(() -> load(2))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessage(
                        "version 2 cannot be put together, for its link, version 2, is wrong: it is a delta against version 1"
                                + " with the weights " + one.getWeights().getSha256()
                                + ", but version 1 has f00d; a delta applies to its own base only");
    }

    @Test
    void shouldRefuseAChainThatGoesInACircle() {
        PolicyVersion one = manifests.get(1L);
        manifests.put(
                1L,
                Manifests.of(
                        1,
                        TensorLocation.newBuilder(one.getWeights())
                                .setBaseVersion(2L)
                                .build()));

        assertThatThrownBy(() -> load(2))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("it claims to be a delta against version 2, which is not older");
    }

    private PolicyVersion manifest(long version) {
        if (!manifests.containsKey(version)) {
            throw new VersionUnavailableException("no manifest " + version);
        }
        return manifests.get(version);
    }

    private Weights load(long version) {
        Weights weights = Weights.zeros(SmallDecoder.SHAPE);
        chain.load(manifest(version), weights, known -> null);
        return weights;
    }

    private static void assertSame(Weights found, Weights expected) {
        for (TensorSpec spec : SmallDecoder.SHAPE.tensors()) {
            assertThat(found.bytes(spec.name())).as(spec.name()).isEqualTo(expected.bytes(spec.name()));
        }
    }
}
