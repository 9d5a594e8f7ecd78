package dev.millrace.runtime.train;

import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.log.run.RunLog;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.TokenizerFiles;

/** Whatever a run needs and can be tried is tried before anything is started. */
final class StartCheck {
    private StartCheck() {}

    /**
     * @param resumed whether the run goes on, and has its first weights on the log
     * @throws ConfigException if a key says what cannot be
     * @throws RefusedRequestException if something is not to be had here
     */
    static void require(MillraceConfig config, boolean resumed) {
        try {
            new Engine(Device.parse(config.run().device()), 1).requireUsable();
        } catch (IllegalArgumentException e) {
            throw new ConfigException("run.device: " + e.getMessage(), e);
        } catch (InferenceException e) {
            throw new RefusedRequestException(
                    "run.device " + config.run().device() + " cannot be used: " + e.getMessage()
                            + "; mend that, or choose --device cpu",
                    e);
        }
        config.requireData();
        if (!(config.task() instanceof TextTask text)
                || !(text.tokenizer() instanceof TokenizerDirectory folder)
                || text.files().contents().isEmpty()
                || TokenizerFiles.isHere(folder)) {
            config.requireTokenizer(); // otherwise the log has it
        }
        config.requireHeldOutFiles();
        RunLog.requireRegistry(config.topics(), config.run().schemaRegistryUrl().written());
        if (!resumed && !config.model().checkpoint().isEmpty()) {
            new CheckpointModel(config.model()).check();
        }
    }
}
