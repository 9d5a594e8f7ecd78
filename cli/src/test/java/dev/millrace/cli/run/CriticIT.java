package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** PPO with a critic of its own, from random weights. */
@Timeout(900)
class CriticIT {
    private static final int STEPS = 40;

    @TempDir
    private Path folder;

    @Test
    void shouldLearnByTheAdvantagesOfItsOwnValues() throws Exception {
        Path run = folder.resolve("run");
        String runId = new Millrace(new ConfigLayers()
                        .yaml("task: {kind: sort, digits: 2}", "the test")
                        .set("algorithm={variant: ppo, advantage: {kind: gae, lambda: 0.95}, critic: value_head}")
                        .set("algorithm.entropy.bonus=0.1")
                        .set("goal.mean_reward=0")
                        .set("admission.eta=0") // the same rollouts on every machine
                        .set("learner.max_steps=" + STEPS)
                        .resolve())
                .in(run)
                .run()
                .runId();

        try (LoggedRun log = LoggedRun.in(run, runId)) {
            List<TrainingStep> steps = log.records(log.topics().trainingLog(), TrainingStep.class).stream()
                    .sorted(Comparator.comparingLong(TrainingStep::getBatchId))
                    .toList();
            assertThat(steps).hasSize(STEPS);
            assertThat(rewards(steps.subList(0, 5))).isLessThan(0.2);
            assertThat(rewards(steps.subList(STEPS - 5, STEPS))).isGreaterThan(0.4);
            List<Double> explained = steps.stream()
                    .map(step -> step.getMetrics().get("explained_variance"))
                    .toList();
            assertThat(explained.get(0)).as("by a head of zeros").isZero();
            assertThat(explained).anyMatch(share -> share > 0.05);
            assertThat(steps)
                    .allSatisfy(step ->
                            assertThat(step.getMetrics().get("value_loss")).isPositive());
            assertThat(log.records(log.topics().scores(), Score.class))
                    .allSatisfy(score -> score.getVectors()
                            .forEach(vector -> assertThat(vector.getValues() != null)
                                    .as("values of " + vector.getPolicy())
                                    .isEqualTo(vector.getPolicy() == PolicyRole.PROXIMAL)));
            assertThat(log.records(log.topics().trajectories(), Trajectory.class))
                    .allSatisfy(trajectory -> assertThat(PackedFloats.length(trajectory.getProximalValues()))
                            .isEqualTo(PackedFloats.length(trajectory.getProximalLogProbs())));
        }
        assertThat(millrace("replay", "--run-dir", run.toString(), "--retrain", "--from-version", "0"))
                .contains("reproduce the weights of all " + STEPS + " versions bit for bit");
        Path exported = folder.resolve("exported");
        millrace("model", "export", "--run-dir", run.toString(), "--to", exported.toString());
        assertThat(new CheckpointDirectory(exported).layout())
                .containsKey("model.norm.weight")
                .doesNotContainKeys("value_head.weight", "value_head.bias");
    }

    private static double rewards(List<TrainingStep> steps) {
        return steps.stream().mapToDouble(TrainingStep::getRewardMean).average().orElseThrow();
    }

    private static String millrace(String... arguments) {
        StringWriter said = new StringWriter();
        int status = Main.commandLine()
                .setOut(new PrintWriter(said))
                .setErr(new PrintWriter(said))
                .execute(arguments);
        assertThat(status).as(said.toString()).isZero();
        return said.toString().replaceAll("\\s+", " ");
    }
}
