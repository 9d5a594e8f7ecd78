package dev.millrace.runtime.pipeline;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.AdapterExport;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.CheckpointExport;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionUnavailableException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Writes a version of a run as a Hugging Face directory: in the layout of the run's initial checkpoint if that still
 * exists, otherwise in the version's own data type with a config made from the shape.
 *
 * <p>Reads the run's log only. Used once.
 */
public final class ModelExport {
    private final LogConnection connection;
    private final MillraceConfig config;

    /**
     * What was written.
     *
     * @param start    what the run began with
     * @param types    in which tensors were written, as safetensors files name them
     * @param own      what the values of what was written are: those of the version, and float32 of an adapter that is merged
     * @param adapter  whether an adapter was written by itself
     */
    public record Done(PolicyVersion manifest, Start start, Set<String> types, long bytes, Dtype own, boolean adapter) {
        /** True if the files hold the version bit for bit. */
        public boolean isExact() {
            return types.stream().allMatch(type -> type.equals(Dtype.F32.name()) || type.equals(own.name()));
        }
    }

    /**
     * What a run began with.
     *
     * @param checkpoint as the run's configuration names it; empty for random weights
     * @param sha256     of version 0's weights; empty if its manifest is not known any more
     * @param lack       why types and files, and without {@code files} also config and tokenizer could not be taken from the checkpoint; empty if they were, and for
     *     random weights
     * @param files      that take their place: config and tokenizer as the run's log has them; empty if it has none, or they are not needed
     */
    public record Start(String checkpoint, Optional<String> sha256, Optional<String> lack, Optional<Path> files) {
        /** True if the files have the checkpoint's layout. */
        public boolean isTaken() {
            return !checkpoint.isEmpty() && lack.isEmpty();
        }
    }

    public ModelExport(LogConnection connection, MillraceConfig config) {
        this.connection = connection;
        this.config = config;
    }

    /**
     * Writes it.
     *
     * @param directory must not be there
     * @param version   empty for the newest
     * @param type      in which all tensors are written, one of {@link CheckpointExport#TYPES}; empty for as they lay
     * @throws RefusedRequestException if there is no such version, or it cannot be written there
     */
    public Done to(Path directory, OptionalLong version, Optional<String> type) {
        return write(directory, version, (feed, manifest, weights) -> {
            Start start = start(feed, manifest, weights);
            CheckpointExport plain = start.isTaken()
                    ? CheckpointExport.like(new CheckpointDirectory(Path.of(start.checkpoint())), weights)
                    : start.files().isPresent()
                            ? CheckpointExport.of(weights)
                                    .beside(new CheckpointDirectory(
                                            start.files().get()))
                            : CheckpointExport.of(weights);
            CheckpointExport export = type.map(plain::as).orElse(plain);
            Done done = new Done(manifest, start, export.types(), export.bytes(), weights.dtype(), false);
            export.to(directory, ModelCard.text(connection.run(), done));
            return done;
        });
    }

    /**
     * Writes a version's adapter in PEFT's layout.
     *
     * @param directory must not be there
     * @param version   empty for the newest
     * @throws RefusedRequestException if the version is no adapter, there is no such version, or it cannot be written there
     */
    public Done adapterTo(Path directory, OptionalLong version) {
        return write(directory, version, (feed, manifest, weights) -> {
            LoraAdapter adapter = weights.adapter()
                    .orElseThrow(() -> new RefusedRequestException("version " + manifest.getVersion()
                            + (config.learner().lora().rank() > 0
                                    ? " is the base of the run's adapters, not an adapter; give --version a later one"
                                    : " is not an adapter: the run trains all weights (learner.lora.rank=0)")
                            + ", or leave --adapter out"));
            return adapterTo(directory, feed, manifest, adapter);
        });
    }

    Done adapterTo(Path directory, PolicyFeed feed, PolicyVersion manifest, LoraAdapter adapter) throws IOException {
        String checkpoint = config.model().checkpoint();
        AdapterExport export = new AdapterExport(adapter, checkpoint);
        Start start = new Start(checkpoint, first(feed), Optional.empty(), Optional.empty());
        Done done = new Done(
                manifest,
                start,
                Set.of(export.type()),
                export.bytes(),
                adapter.parameters().dtype(),
                true);
        export.to(directory, ModelCard.text(connection.run(), done));
        return done;
    }

    @FunctionalInterface
    private interface Writing {
        Done of(PolicyFeed feed, PolicyVersion manifest, Weights weights) throws IOException;
    }

    private Done write(Path directory, OptionalLong version, Writing writing) {
        try (PolicyFeed feed = version.isPresent()
                ? PolicyFeed.reaching(version.getAsLong(), connection, config.weights())
                : new PolicyFeed(connection, config.weights())) {
            PolicyVersion newest = feed.newestCommitted()
                    .orElseThrow(() -> new RefusedRequestException("the run has published no version yet"));
            PolicyVersion manifest = version.isPresent() ? feed.manifest(version.getAsLong()) : newest;
            return writing.of(feed, manifest, feed.load(manifest.getVersion()));
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new RefusedRequestException(e.getMessage() + "; give --version a version whose weights are kept", e);
        } catch (CheckpointException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + directory + ": " + e.getMessage(), e);
        }
    }

    Start start(PolicyFeed feed, PolicyVersion manifest, Weights weights) {
        String checkpoint = config.model().checkpoint();
        Optional<String> sha256 = first(feed);
        Optional<String> lack = checkpoint.isEmpty()
                ? Optional.empty()
                : lack(checkpoint, sha256, weights.shape(), PolicyFeed.dtypeOf(manifest));
        return new Start(checkpoint, sha256, lack, lack.isPresent() ? files(weights) : Optional.empty());
    }

    /** The run's tokenizer files, if they are the model's too. */
    private Optional<Path> files(Weights weights) {
        try {
            Optional<Path> found = TokenizerFiles.of(config, connection).map(TokenizerFiles::read);
            return found.isPresent() && shapeAt(found.get(), weights.shape()).equals(weights.shape())
                    ? found
                    : Optional.empty();
        } catch (RefusedRequestException | LogSetupException | CheckpointException | IOException e) {
            return Optional.empty();
        }
    }

    /** The shape of a directory's model, independent of how the run divides its tensors. */
    private static DecoderShape shapeAt(Path directory, DecoderShape like) throws IOException {
        return new CheckpointDirectory(directory, like.maxTensorElements(), like.valueHead()).shape();
    }

    private static Optional<String> first(PolicyFeed feed) {
        try {
            return Optional.of(feed.manifest(0).getWeights().getSha256());
        } catch (VersionUnavailableException e) {
            return Optional.empty();
        }
    }

    /** The directory may hold another model by now, whose tokenizer and config do not apply. */
    private static Optional<String> lack(String checkpoint, Optional<String> sha256, DecoderShape shape, Dtype dtype) {
        Path path = Path.of(checkpoint);
        if (!Files.isDirectory(path)) {
            return Optional.of("the run's start checkpoint is not at " + checkpoint + " any more");
        }
        CheckpointDirectory directory = new CheckpointDirectory(path, shape.maxTensorElements(), shape.valueHead());
        try {
            if (!shapeAt(path, shape).equals(shape)) {
                return Optional.of("at " + checkpoint + " is now a model of another shape");
            }
            String found = VersionHash.of(directory, dtype);
            if (sha256.isPresent() && !sha256.get().equals(found)) {
                return Optional.of("at " + checkpoint + " the weights are no longer those the run started from");
            }
            return Optional.empty();
        } catch (CheckpointException | IOException e) {
            return Optional.of("the run's start checkpoint can no longer be read: " + e.getMessage());
        }
    }
}
