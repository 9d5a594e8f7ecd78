package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.diagnostics.AlgorithmPatch;
import dev.millrace.corrections.diagnostics.AlgorithmPatch.Effect;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Prescription;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.retrain.PatchTrial;
import dev.millrace.replay.retrain.Trial;
import dev.millrace.replay.retrain.TrialCourse;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Patches of {@code algorithm} for a diagnosis: applied to the run's configuration, which may refuse them, and tried on
 * the recorded batches.
 *
 * @param branch of the diagnosis that is answered: the most severe
 * @param doses one per patch, in order
 * @param trial of those that can be tried; empty if there is none
 * @param untried why nothing was tried despite a patch; empty otherwise
 */
public record Treatment(
        Branch branch, Prescription prescription, List<Dose> doses, Optional<Trial> trial, Optional<String> untried) {
    private static final ObjectMapper JSON = new ObjectMapper();

    public Treatment {
        doses = List.copyOf(doses);
    }

    /**
     * One patch, and whether the run's configuration accepts it.
     *
     * @param yaml the patch as a file for {@code --config} or {@code --corrections}, or to be pasted
     * @param refusal why it cannot be applied, or cannot be tried; empty if it can
     */
    public record Dose(AlgorithmPatch patch, String yaml, Optional<String> refusal) {
        public String name() {
            return patch.toString();
        }
    }

    /**
     * Treats a diagnosis and tries the patches on a run.
     *
     * @param threads at least 1
     */
    public static Treatment of(
            RecordedRun run, MillraceConfig config, Diagnosis diagnosis, TrialLimit limit, int threads)
            throws InterruptedException {
        Branch branch = diagnosis.first();
        Prescription prescription = branch.prescription(config.algorithm());
        List<Dose> doses = new ArrayList<>();
        List<Alternative> tried = new ArrayList<>();
        @Nullable PatchTrial trial = null;
        Optional<String> untried = Optional.empty();
        for (AlgorithmPatch patch : prescription.patches()) {
            String yaml = ConfigTree.write(tree(patch));
            try {
                Algorithm patched = patched(config, yaml);
                if (patch.effect() != Effect.UPDATES && untried.isEmpty()) {
                    trial = trial == null ? new PatchTrial(run, config.algorithm(), limit, System::nanoTime) : trial;
                    if (!trial.isPossible()) {
                        untried = Optional.of("the run has no batch");
                    }
                    var missing = trial.missing(patched);
                    if (missing.isPresent()) {
                        doses.add(new Dose(
                                patch,
                                yaml,
                                Optional.of("it reads " + missing.get().text()
                                        + ", and the run's rollouts were recorded without them")));
                        continue;
                    }
                    tried.add(new Alternative(patch.toString(), patched));
                }
                doses.add(new Dose(patch, yaml, Optional.empty()));
            } catch (ConfigException e) {
                doses.add(new Dose(patch, yaml, Optional.of(String.valueOf(e.getMessage()))));
            } catch (ArchiveException e) {
                untried = Optional.of(String.valueOf(e.getMessage()));
                doses.add(new Dose(patch, yaml, Optional.empty()));
            }
        }
        Optional<Trial> found = Optional.empty();
        if (trial != null && !tried.isEmpty() && untried.isEmpty()) {
            try {
                found = Optional.of(trial.of(branch.cause(), tried, threads));
            } catch (ArchiveException e) {
                untried = Optional.of(String.valueOf(e.getMessage()));
            }
        }
        return new Treatment(branch, prescription, doses, found, untried);
    }

    /**
     * Returns the run's algorithm under a patch. It resolves the whole configuration, so that it refuses the same contradictions as the
     * start of a run.
     *
     * @param yaml with the key {@code algorithm}
     * @throws ConfigException if the patch contradicts other settings
     */
    public static Algorithm patched(MillraceConfig config, String yaml) {
        return ConfigBinder.bind(config, ConfigTree.parse(yaml, "the patch")).algorithm();
    }

    private static ObjectNode tree(AlgorithmPatch patch) {
        return JsonNodeFactory.instance.objectNode().set("algorithm", JSON.valueToTree(patch.keys()));
    }

    /** The smallest patch that ends the alarm, with its trial; empty if none does, or none was tried. */
    public Optional<Dose> mending() {
        return trial.flatMap(Trial::smallest).flatMap(this::doseOf);
    }

    /** Patch that decided a course; empty for the run's own. */
    public Optional<Dose> doseOf(TrialCourse course) {
        return doses.stream().filter(dose -> dose.name().equals(course.name())).findFirst();
    }
}
