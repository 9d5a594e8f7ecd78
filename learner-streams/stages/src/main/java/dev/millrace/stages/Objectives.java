package dev.millrace.stages;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.objective.Aspo;
import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.BypassReinforce;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.Ctpo;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.Dispo;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.Ipo;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.Luspo;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.P3o;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.objective.R2vpo;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.SequenceSapo;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.corrections.objective.Vespo;
import java.util.List;

/** The library's objectives by name, and by verl's where it has another. Their order is that of the configuration's reference. */
final class Objectives {
    private Objectives() {}

    static List<Kind> kinds() {
        return List.of(
                objective(
                                "reinforce",
                                new Reinforce(),
                                "The policy gradient −w A log π under the batch's importance weights; no trust region.")
                        .also("gpg"),
                objective("ppo_clip", PpoClip.defaults(), "PPO's clipped surrogate with the dual clip.")
                        .also("vanilla"),
                objective(
                        "decoupled_ppo",
                        DecoupledPpo.defaults(),
                        "PPO's clip around the proximal policy, under weights of proximal over behavior (AReaL)."),
                objective(
                        "gspo",
                        Gspo.defaults(),
                        "PPO's clip on the sequence's ratio, a geometric mean over its tokens."),
                objective(
                        "gspo_token",
                        GspoToken.defaults(),
                        "The sequence's ratio with the token's gradient; what verl calls gspo."),
                objective(
                        "ctpo",
                        Ctpo.defaults(),
                        "PPO's clip on the product of the ratios so far, in a band that widens with the position."),
                objective("gmpo", Gmpo.defaults(), "The geometric mean of token ratios that are clipped one by one.")
                        .also("geo_mean"),
                objective(
                        "dppo_tv",
                        DppoTv.defaults(),
                        "The policy gradient with a bound on the change of a token's probability."),
                objective(
                        "dppo_kl",
                        DppoKl.defaults(),
                        "The policy gradient with a bound on the divergence of a token's probability."),
                objective("sapo", Sapo.defaults(), "A soft gate on a token's ratio instead of a clip."),
                objective("sequence_sapo", SequenceSapo.defaults(), "SAPO's soft gate on the sequence's ratio."),
                objective(
                        "cispo",
                        Cispo.defaults(),
                        "The ratio is clipped as a weight, so every token keeps a gradient."),
                objective("dro", Dro.defaults(), "The policy gradient with a quadratic leash; no ratio is formed."),
                objective(
                        "kl_cov",
                        KlCov.defaults(),
                        "The unclipped surrogate, with a penalty on the tokens through which entropy falls."),
                objective(
                        "clip_cov",
                        ClipCov.defaults(),
                        "PPO's clip, silenced on a few tokens drawn from those through which entropy falls."),
                objective(
                        "m2po",
                        M2poSurrogate.defaults(),
                        "The unclipped surrogate, whose trust region is the second-moment mask."),
                objective(
                        "oapl",
                        Oapl.defaults(),
                        "Regression of the sequence's log ratio to the behavior policy onto the optimal advantage."),
                objective("r2vpo", R2vpo.defaults(), "The surrogate with a penalty on the variance of its ratio."),
                objective(
                        "quatro",
                        Quatro.defaults(),
                        "A trust region for every prompt, whose multiplier is solved for over its answers."),
                objective("topr", new Topr(), "Good answers at weight 1, bad ones truncated at 1."),
                objective(
                        "aspo", Aspo.defaults(), "The ratio to the behavior policy, flipped for positive advantages."),
                objective(
                        "dispo",
                        Dispo.defaults(),
                        "The ratio to the behavior policy, bounded differently for correct and for incorrect answers."),
                objective(
                        "ipo",
                        Ipo.defaults(),
                        "The surrogate on tokens whose probability has not moved far, either way."),
                objective("luspo", Luspo.defaults(), "GSPO times the sequence's length."),
                objective(
                        "p3o",
                        P3o.defaults(),
                        "Weights capped at the effective sample size, and a pull back that grows as it falls."),
                objective(
                        "vespo", Vespo.defaults(), "The policy gradient under a reshaped weight of the whole answer."),
                objective(
                        "bypass_ppo_clip",
                        BypassPpoClip.defaults(),
                        "verl's bypass mode with PPO's clip: the trust region is around the behavior policy."),
                objective(
                        "bypass_reinforce",
                        BypassReinforce.defaults(),
                        "verl's bypass mode with the policy gradient: weights are made at every update."));
    }

    private static Kind objective(String name, Record defaults, String meaning) {
        return Kind.of(Objective.class, name, defaults, meaning);
    }
}
