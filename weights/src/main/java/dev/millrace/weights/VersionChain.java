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
 * Puts a version together: its anchor, and every delta since, in order.
 *
 * <p>The chain is walked back from the version wanted to the nearest one that is at hand, or else to the anchor, and then
 * applied forwards. Every link is verified on its own, so that the one that is missing or wrong is named, and a delta is
 * applied only to the weights that it was made against.
 */
final class VersionChain {
    private final LongFunction<PolicyVersion> manifests;
    private final TensorReader reader;

    /** Reads the tensors at one location, and hands on each that is verified. */
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

    /** @param manifests by version; throws {@link VersionUnavailableException} for one that is not known */
    VersionChain(LongFunction<PolicyVersion> manifests, TensorReader reader) {
        this.manifests = manifests;
        this.reader = reader;
    }

    /**
     * Overwrites weights with those of a version, tensor by tensor and link by link.
     *
     * @param into of the version's shape and type, with an adapter if the version is one, which then is all that is overwritten; of no version after
     *     an exception
     * @param atHand weights of a version that are there already, or null; not written
     * @throws VersionUnavailableException of the version wanted, naming the link that cannot be had
     * @throws CorruptVersionException of the version wanted, naming the link that is wrong
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
        if (version >= link.getVersion()) { // or the walk might not end
            throw corrupt(
                    wanted, link, "it claims to be a delta against version " + version + ", which is not an older one");
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
                            + "; a delta is applied to nothing but its own base");
        }
        return base;
    }

    @SuppressWarnings("ReferenceEquality") // which link of this walk it is, not what it says
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
                wanted.getVersion(),
                "version " + wanted.getVersion() + " cannot be put together without its link, version " + missing + ": "
                        + why.getMessage(),
                why);
    }

    private static CorruptVersionException corrupt(PolicyVersion wanted, PolicyVersion link, String why) {
        return new CorruptVersionException(
                wanted.getVersion(),
                "version " + wanted.getVersion() + " cannot be put together, for its link, version " + link.getVersion()
                        + ", is wrong: " + why);
    }
}
