package dev.millrace.runtime.pipeline;

import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.LearnerMemory;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.ModelSizes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Checks what a run of a configuration needs: device, model, data, tokenizer, algorithm, and the cluster operations of
 * the roles, on a temporary topic under the run's prefix. Creates and changes nothing of a run.
 */
public final class Preflight {
    private final MillraceConfig config;
    private final Supplier<String> names;
    private final List<RoleRights> roles;

    /**
     * @param names a word unique to the preflight
     * @param roles whose rights the account needs on a cluster with ACLs
     */
    public Preflight(MillraceConfig config, Supplier<String> names, List<RoleRights> roles) {
        this.config = config;
        this.names = names;
        this.roles = List.copyOf(roles);
    }

    /** All checks, in an order in which a later one needs those before it. */
    public List<PreflightCheck> run() {
        List<PreflightCheck> checks = new ArrayList<>();
        checks.add(tried("device", this::device));
        checks.add(tried("model", this::model));
        checks.add(tried("memory", this::memory));
        checks.add(tried("data", this::data));
        checks.add(tried("tokenizer", this::tokenizer));
        checks.add(algorithm());
        checks.add(tried("registry", this::registry));
        checks.addAll(cluster());
        return List.copyOf(checks);
    }

    /** A refusal is a failed check; any other exception is a bug. */
    private static PreflightCheck tried(String subject, Supplier<String> check) {
        try {
            return PreflightCheck.ok(subject, check.get());
        } catch (ConfigException
                | RefusedRequestException
                | CheckpointException
                | InferenceException
                | LogSetupException
                | IllegalArgumentException e) {
            return PreflightCheck.failed(subject, String.valueOf(e.getMessage()));
        }
    }

    private String device() {
        new Engine(Device.parse(config.run().device()), 1).requireUsable();
        return config.run().device() + " runs a graph";
    }

    private String model() {
        String directory = config.model().checkpoint();
        if (directory.isEmpty()) {
            return "starts from random weights";
        }
        new CheckpointModel(config.model()).check();
        return directory + " can be read";
    }

    private String memory() {
        Optional<String> gradient = LearnerMemory.require(config);
        List<String> sentences = new ArrayList<>();
        ModelSizes.sentence(config).ifPresent(sentences::add);
        gradient.ifPresent(sentences::add);
        return sentences.isEmpty() ? "the model is small" : String.join("; ", sentences);
    }

    private String data() {
        config.requireData();
        config.requireHeldOutFiles();
        return "every file of the task is there";
    }

    private String tokenizer() {
        config.requireTokenizer();
        return "the text task has one";
    }

    private PreflightCheck algorithm() {
        List<String> doubts = config.algorithm().doubts();
        return doubts.isEmpty()
                ? PreflightCheck.ok("algorithm", "every stage can act")
                : PreflightCheck.doubt("algorithm", String.join("; ", doubts));
    }

    private String registry() {
        String url = config.run().schemaRegistryUrl().written();
        RunLog.requireRegistry(config.topics(), url);
        return url.isEmpty()
                ? "schemas are kept in the topic " + config.topics().schemasTopic()
                : "it answers";
    }

    private List<PreflightCheck> cluster() {
        if (config.run().embedded()) {
            return List.of(
                    PreflightCheck.ok("cluster", "the run starts its own broker; --bootstrap-servers names another"));
        }
        if (config.run().id().isEmpty()) {
            return List.of(PreflightCheck.failed(
                    "cluster", "run.id is empty, and rights are for topics of one run; give --set run.id=NAME"));
        }
        List<PreflightCheck> checks = new ArrayList<>(new ClusterTrial(
                        RunLookup.client(config),
                        config.run().topics(),
                        config.topics(),
                        roles,
                        AccountRights.of(config, roles),
                        names.get())
                .run());
        boolean reached = checks.get(0).outcome() == PreflightCheck.Outcome.OK;
        checks.add(reached ? recorded() : PreflightCheck.skipped("run", "cluster"));
        return checks;
    }

    /** Checks what the cluster has under this run's id. */
    private PreflightCheck recorded() {
        try {
            Optional<ClaimedRun> claim = RunLookup.claim(config);
            if (claim.isEmpty()) {
                return PreflightCheck.ok(
                        "run", "there is none of the id " + config.run().id() + " yet");
            }
            List<String> changes = RunLookup.configuration(claim.get())
                    .map(recorded -> recorded.changes(config))
                    .orElse(List.of());
            return changes.isEmpty()
                    ? PreflightCheck.ok("run", config.run().id() + " is there, and continues under this configuration")
                    : PreflightCheck.doubt(
                            "run",
                            config.run().id() + " is there under another configuration: " + String.join("; ", changes));
        } catch (LogSetupException | ConfigException e) {
            return PreflightCheck.failed("run", String.valueOf(e.getMessage()));
        }
    }
}
