package dev.millrace.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Assembles a version: its anchor, and every delta since, in order.
 *
 * <p>Walks the chain back from the requested version to the nearest loaded one or the anchor, and then applies it
 * forwards. Verifies every link separately, so that errors name the broken one, and a delta is applied only to its own
 * base.
 */
final class VersionChain {
    private final LongFunction<PolicyVersion> manifests;
    private final TensorReader reader;

    /** Reads the tensors at one location, and passes on verified ones. */
    @FunctionalInterface
    interface TensorReader {
        void read(
                PolicyVersion manifest,
                TensorLocation location,
                List<TensorSpec> expected,
                Dtype dtype,
                Function<String, ByteBuffer> base,
                BiConsumer<String, ByteBuffer> sink);
    }

    /** @param manifests by version; throws {@link VersionUnavailableException} for an unknown one */
    VersionChain(LongFunction<PolicyVersion> manifests, TensorReader reader) {
        this.manifests = manifests;
        this.reader = reader;
    }

    /**
     * Overwrites weights with those of a version, tensor by tensor and link by link.
     *
     * @param into of the version's shape and type; of an adapter version only the adapter is overwritten; undefined after an
     * exception
     * @param atHand loaded weights of a version, or null; read-only
     * @throws VersionUnavailableException of the requested version, naming the missing link
     * @throws CorruptVersionException of the requested version, naming the corrupt link
     */
    void load(PolicyVersion wanted, Weights into, LongFunction<@Nullable Weights> atHand) {
        Deque<PolicyVersion> links = new ArrayDeque<>();
        Function<String, ByteBuffer> base = name -> {
            throw new IllegalStateException("an anchor has no base that " + name + " could be a delta against");
        };
        PolicyVersion link = wanted;
        links.push(link);
        while (link.getWeights().getBaseVersion() != null) {
            PolicyVersion before = baseOf(link, wanted);
            Weights there = atHand.apply(before.getVersion());
            if (there != null) {
                base = there.trained()::bytes;
                break;
            }
            link = before;
            links.push(link);
        }
        Parameters tensors = into.trained();
        while (!links.isEmpty()) {
            read(links.pop(), wanted, tensors, base);
            base = tensors::bytes; // each tensor of the next link is overwritten once its delta is applied
        }
    }

    private PolicyVersion baseOf(PolicyVersion link, PolicyVersion wanted) {
        TensorLocation delta = link.getWeights();
        long version = delta.getBaseVersion();
        if (version >= link.getVersion()) { // guards against an endless walk
            throw corrupt(wanted, link, "it claims to be a delta against version " + version + ", which is not older");
        }
        PolicyVersion base;
        try {
            base = manifests.apply(version);
        } catch (VersionUnavailableException e) {
            throw unavailable(wanted, version, e);
        }
        if (!base.getWeights().getSha256().equals(delta.getBaseSha256())) {
            throw corrupt(
                    wanted,
                    link,
                    "it is a delta against version " + version + " with the weights "
                            + delta.getBaseSha256() + ", but version " + version + " has "
                            + base.getWeights().getSha256()
                            + "; a delta applies to its own base only");
        }
        return base;
    }

    @SuppressWarnings("ReferenceEquality") // position in this walk
    private void read(PolicyVersion link, PolicyVersion wanted, Parameters into, Function<String, ByteBuffer> base) {
        try {
            reader.read(link, link.getWeights(), into.specs(), into.dtype(), base, into::load);
        } catch (VersionUnavailableException e) {
            throw link == wanted ? e : unavailable(wanted, link.getVersion(), e);
        } catch (CorruptVersionException e) {
            throw link == wanted ? e : corrupt(wanted, link, String.valueOf(e.getMessage()));
        }
    }

    private static VersionUnavailableException unavailable(
            PolicyVersion wanted, long missing, VersionUnavailableException why) {
        return new VersionUnavailableException(
                "version " + wanted.getVersion() + " cannot be put together without its link, version " + missing + ": "
                        + why.getMessage(),
                why);
    }

    private static CorruptVersionException corrupt(PolicyVersion wanted, PolicyVersion link, String why) {
        return new CorruptVersionException("version " + wanted.getVersion()
                + " cannot be put together, for its link, version " + link.getVersion() + ", is wrong: " + why);
    }
}
