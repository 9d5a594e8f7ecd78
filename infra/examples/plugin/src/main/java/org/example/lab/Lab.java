package org.example.lab;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.Plugin;
import dev.millrace.api.plugin.PluginApi;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import java.util.List;

/** What this jar brings: one kind of each extension point. */
public final class Lab implements Plugin {

    @Override
    public String name() {
        return "lab";
    }

    @Override
    public int apiVersion() {
        return PluginApi.VERSION; // a constant: the number of the release that this was built against
    }

    @Override
    public List<Kind> kinds() {
        return List.of(
                Kind.of(TaskSettings.class, "reverse", new Reverse(3), "Answer letters with the same letters, last one first."),
                Kind.of(Environment.class, "spelling", new Spelling(), "One turn, whose right answer is known."),
                Kind.of(RewardFunction.class, "first_bonus", new FirstBonus(0.25), "Adds something for a right beginning."),
                Kind.of(RewardStage.class, "reward_cap", new RewardCap(1), "Caps the rewards of a batch."),
                Kind.of(
                        AdvantageEstimator.class,
                        "median_baseline",
                        new MedianBaseline(),
                        "The reward less the median reward of its group."),
                Kind.of(MaskStage.class, "last_tokens", new LastTokens(1), "Masks the last tokens of each response."),
                Kind.of(Objective.class, "scaled_reinforce", new ScaledReinforce(1), "The policy gradient, times a constant."),
                Kind.of(StepObserver.class, "step_file", new StepFile("steps.txt"), "Writes a line for each step into a file."));
    }
}
