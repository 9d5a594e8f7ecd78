package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import java.awt.image.BufferedImage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunSummaryTest {
    private static StepRow row(int step, double reward, double staleness, long stalenessMax, double ess, long tokens) {
        return new StepRow(step, step, reward, staleness, stalenessMax, ess, 1e-3, 0.5, 1, 2, 250, 6, tokens, 0, "ab");
    }

    private static RunSummary summary(List<StepRow> steps) {
        Balance balance = new Balance(
                new TreeMap<>(Map.of(
                        new RolloutOrigin(0, 3),
                        new Tally(
                                10, 5, Map.of("m2po", 1L), Map.of("duplicate", 2L), Map.of("reward", 1L), 0, 1, 0, 0))),
                0,
                Map.of(),
                List.of(),
                List.of(),
                0,
                List.of());
        return new RunSummary(
                "r",
                steps,
                steps.size(),
                Double.NaN,
                12.5,
                new RunSummary.Tokens(3, 2, 1),
                balance,
                Map.of("generator", 0.25, "learner", 0.5),
                true,
                "the goal was reached");
    }

    @Test
    void shouldAverageRewardsOverTenSteps() {
        List<StepRow> steps = new ArrayList<>();
        for (int i = 1; i <= 20; i++) {
            steps.add(row(i, i <= 10 ? 0.1 : i <= 15 ? 1.0 : 0.5, 1, 1, 1, 1));
        }
        Rewards rewards = Rewards.over(steps);
        assertThat(rewards.first()).isCloseTo(0.1, within(1e-12));
        assertThat(rewards.last()).isCloseTo(0.75, within(1e-12)); // five of 1.0 and five of 0.5
        assertThat(rewards.best()).isCloseTo(0.75, within(1e-12));
    }

    @Test
    void shouldCarryEveryNameThatIsReliedUpon() {
        JsonNode json = summary(List.of(row(1, 0.25, 1.0, 2, 0.5, 100), row(2, 0.75, 2.0, 4, 0.75, 300)))
                .json();
        assertThat(json.path("run_id").asText()).isEqualTo("r");
        assertThat(json.path("steps").asInt()).isEqualTo(2);
        assertThat(json.path("policy_version").asInt()).isEqualTo(2);
        assertThat(json.at("/seconds/to_first_step").isNull()).isTrue();
        assertThat(json.at("/seconds/total").asDouble()).isEqualTo(12.5);
        assertThat(json.at("/reward/last").asDouble()).isEqualTo(0.5);
        assertThat(json.at("/tokens/scored").asInt()).isEqualTo(2);
        assertThat(json.at("/rollouts/generated").asInt()).isEqualTo(10);
        assertThat(json.at("/rollouts/dropped/duplicate").asInt()).isEqualTo(2);
        assertThat(json.at("/rollouts/in_flight").asInt()).isEqualTo(1);
        assertThat(json.at("/rollouts/adds_up").asBoolean()).isTrue();
        assertThat(json.at("/staleness/mean").asDouble()).isEqualTo(1.75); // (1*100 + 2*300) / 400
        assertThat(json.at("/staleness/max").asInt()).isEqualTo(4);
        assertThat(json.at("/ess/min").asDouble()).isEqualTo(0.5);
        assertThat(json.at("/ess/median").asDouble()).isEqualTo(0.625);
        assertThat(json.at("/idle/generator").asDouble()).isEqualTo(0.25);
    }

    @Test
    void shouldSummariseARunWithoutSteps() {
        JsonNode json = summary(List.of()).json();
        assertThat(json.path("steps").asInt()).isZero();
        assertThat(json.at("/ess/median").asDouble()).isZero();
    }

    @Test
    void shouldDrawAPicture(@TempDir Path folder) throws Exception {
        List<StepRow> steps = new ArrayList<>();
        for (int i = 1; i <= 50; i++) {
            steps.add(row(i, i / 50.0, 1, 2, 0.9, 1));
        }
        Path file = folder.resolve("run.png");
        RunPicture.write(steps, "a run", file);
        BufferedImage image = ImageIO.read(file.toFile());
        assertThat(image.getWidth()).isEqualTo(900);
        assertThat(image.getHeight()).isEqualTo(1020);
        // the reward line rises: its colour is low at the left and high at the right
        assertThat(rowOf(image, 150)).isGreaterThan(rowOf(image, 800));
    }

    private static int rowOf(BufferedImage image, int x) {
        for (int y = 0; y < 340; y++) {
            if ((image.getRGB(x, y) & 0xffffff) == 0x0072b2) {
                return y;
            }
        }
        throw new AssertionError("no reward line at column " + x);
    }
}
