package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.diagnostics.AlgorithmPatch.Effect;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import dev.millrace.replay.retrain.Trial;
import dev.millrace.replay.retrain.Trial.AlarmPersistence;
import dev.millrace.replay.retrain.TrialCourse;
import dev.millrace.replay.retrain.TrialCourse.TrialFigure;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.runtime.report.Treatment.Dose;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Function;

/** A treatment for people and for programs. */
public final class TreatmentReport {
    private static final double MUCH_LOST = 0.5;

    private final Treatment treatment;

    private TreatmentReport(Treatment treatment) {
        this.treatment = treatment;
    }

    /** The answer to the diagnosis in a line with its figure. */
    public static Conclusion conclusion(Treatment treatment) {
        return new TreatmentReport(treatment).conclusion();
    }

    /** The trials and their results: a table, sentences, and the patch to paste. */
    public static Section section(Treatment treatment) {
        return new TreatmentReport(treatment).section();
    }

    public static ObjectNode json(Treatment treatment) {
        return new TreatmentReport(treatment).json();
    }

    private Conclusion conclusion() {
        String asked = "What is the smallest change that answers "
                + treatment.branch().cause().title() + "?";
        Optional<TrialCourse> mending = treatment.trial().flatMap(Trial::smallest);
        if (mending.isPresent()) {
            Trial trial = treatment.trial().get();
            TrialCourse course = mending.get();
            return Conclusion.of(
                            asked,
                            course.name() + ": " + came(trial, course) + byChance(trial),
                            course.lost() > MUCH_LOST * course.tokens().of() || isPerhapsChance(trial)
                                    ? Health.LOOK
                                    : Health.OK)
                    .resting(
                            "steps with the alarm",
                            say(
                                    "%d of %d, in place of %d",
                                    course.causeSteps(),
                                    trial.batches().count(),
                                    trial.recorded().causeSteps()))
                    .sure("counted on one run; a replay cannot show how the policy would have evolved");
        }
        if (treatment.trial().isPresent()) {
            return Conclusion.of(asked, "no patch that was tried ends the alarm; " + elsewhere(), Health.ILL)
                    .sure(say(
                            "counted on %,d recorded batches",
                            treatment.trial().get().batches().count()));
        }
        if (treatment.doses().stream().anyMatch(dose -> dose.refusal().isEmpty())) {
            return Conclusion.of(
                            asked,
                            treatment.doses().get(0).name() + ", which a replay of decisions cannot test",
                            Health.LOOK)
                    .sure(treatment.untried().orElse("it acts within the step: retraining shows it"));
        }
        return Conclusion.of(
                        asked,
                        treatment.doses().isEmpty()
                                ? "no patch of algorithm can; " + elsewhere()
                                : "no patch of algorithm goes with this run; " + elsewhere(),
                        Health.ILL)
                .sure("by the rules of the decision tree; nothing was tried");
    }

    /** Lengths surge under every patch, and the length guard either acted or did not; there is no chance in it. */
    private static boolean isPerhapsChance(Trial trial) {
        AlarmPersistence unpatched = trial.unpatched();
        return trial.cause() != Cause.LENGTH_SURGE && (unpatched.goesByItself() || !unpatched.isKnown());
    }

    /** The same figure without a patch, as the baseline of its effect. */
    private static String byChance(Trial trial) {
        AlarmPersistence unpatched = trial.unpatched();
        if (trial.cause() == Cause.LENGTH_SURGE) {
            return "";
        }
        if (unpatched.goesByItself()) {
            return say(
                    "; but the alarm also ends by chance: unpatched, it ended a step later after %d of %d steps that had it",
                    unpatched.gone(), unpatched.followed());
        }
        return unpatched.isKnown()
                ? say(
                        "; unpatched, it persisted at each of the %d steps that followed one with it",
                        unpatched.followed())
                : say(
                        "; whether it would have ended by chance is unknown: it was raised at the last %s only, and"
                                + " the window is %d",
                        unpatched.followed() == 0 ? "step" : unpatched.followed() + 1 + " steps",
                        DiagnosticsCourse.WINDOW);
    }

    private String elsewhere() {
        List<String> places = treatment.prescription().elsewhere().stream()
                .map(each -> each.where())
                .toList();
        return places.isEmpty() ? "check upstream causes" : "what else: " + String.join(", ", places);
    }

    private Section section() {
        List<String> notes = new ArrayList<>();
        treatment.trial().ifPresent(trial -> notes.addAll(said(trial)));
        for (Dose dose : treatment.doses()) {
            dose.refusal().ifPresent(why -> notes.add(dose.name() + " does not apply: " + why));
        }
        treatment.untried().ifPresent(why -> notes.add("nothing was tried: " + why));
        if (treatment.doses().stream()
                .anyMatch(dose -> dose.refusal().isEmpty() && dose.patch().effect() == Effect.UPDATES)) {
            notes.add("it acts on the updates within a step, which a replay of decisions does not show; save the"
                    + " listing below as PATCH.yaml and retrain: './millrace replay --retrain --corrections"
                    + " PATCH.yaml' on this run or archive");
        }
        treatment.prescription().elsewhere().forEach(each -> notes.add("elsewhere: " + each));
        Optional<Dose> pasted = treatment
                .mending()
                .or(() -> treatment.doses().stream()
                        .filter(dose -> dose.refusal().isEmpty())
                        .findFirst());
        Section section = Section.of(
                        treatment.trial().isPresent() ? "The smallest change, tried" : "The smallest change")
                .noting(notes)
                .listing(pasted.map(dose -> "# or: --set "
                                + String.join(" --set ", dose.patch().settings()) + "\n" + dose.yaml())
                        .orElse(""));
        return treatment.trial().map(trial -> section.with(table(trial))).orElse(section);
    }

    private List<String> said(Trial trial) {
        List<String> notes = new ArrayList<>();
        notes.add(say(
                "tried on batches %d to %d: %,d steps of %,d rollouts, staleness %.2f versions on average, in %.1f s (at most %,d batches and %,d s)%s",
                trial.batches().first(),
                trial.batches().last(),
                trial.batches().count(),
                trial.batches().rollouts(),
                trial.batches().stalenessMean(),
                trial.seconds(),
                trial.limit().batches(),
                trial.limit().time().toSeconds(),
                trial.isCut() ? "; stopped by its time limit before the last batch" : ""));
        if (trial.batches().notAsRecorded() > 0) {
            notes.add(say(
                    "%,d of these batches do not match the run's algorithm, so the patch is compared with the record",
                    trial.batches().notAsRecorded()));
        }
        for (TrialCourse course : trial.patched()) {
            long lost = course.lost() - trial.recorded().lost();
            notes.add(say(
                    "%s: %s; %,d of %,d tokens are %s for it",
                    course.name(),
                    came(trial, course),
                    Math.abs(lost),
                    course.tokens().of(),
                    lost >= 0 ? "lost" : "recovered"));
        }
        notes.add("not shown by a replay: after the first different step the policy would have differed and sampled"
                + " other rollouts; clipping and gradient noise within the step; whether the run learns more");
        return notes;
    }

    private static String came(Trial trial, TrialCourse course) {
        if (trial.cause() == Cause.LENGTH_SURGE) {
            return course.guardedSteps() == 0
                    ? "it would have lowered the rate at no step"
                    : say(
                            "it would have lowered the rate at %d of %d steps",
                            course.guardedSteps(), trial.batches().count());
        }
        if (trial.isMended(course)) {
            return "ends the alarm on the recorded batches";
        }
        return course.diagnoses().last().isEmpty()
                ? "leaves no token of the last batch to train on"
                : "does not end the alarm; the last step then shows "
                        + course.diagnoses().last().get().cause().title();
    }

    /** A row for each number, a column for each algorithm. */
    private Table table(Trial trial) {
        List<TrialCourse> courses = new ArrayList<>(List.of(trial.recorded()));
        courses.addAll(trial.patched());
        List<Column<Row>> columns = new ArrayList<>();
        columns.add(Column.text("", Row::name));
        for (int c = 0; c < courses.size(); c++) {
            int course = c;
            columns.add(Column.text(
                    courses.size() > 2 && c > 0 ? "patch " + c : c == 0 ? "recorded" : "patched",
                    row -> row.values().get(course)));
        }
        return Table.of("", columns, rows(courses));
    }

    private record Row(String name, List<String> values) {}

    private static List<Row> rows(List<TrialCourse> courses) {
        List<Row> rows = new ArrayList<>();
        rows.add(row("steps with this alarm", courses, course -> String.valueOf(course.causeSteps())));
        rows.add(row(
                "steps with any alarm",
                courses,
                course -> String.valueOf(course.diagnoses().alarmSteps())));
        rows.add(row(
                "tokens masked or without weight",
                courses,
                course -> say(
                        "%.1f %%",
                        100.0 * course.lost() / Math.max(1, course.tokens().of()))));
        rows.add(row(
                "rollouts masked whole",
                courses,
                course -> say("%.1f %%", 100 * course.sequences().fraction())));
        for (TrialFigure figure : TrialFigure.values()) {
            if (courses.stream().anyMatch(course -> course.mean(figure).isPresent())) {
                rows.add(row(figure.title(), courses, course -> shown(course.mean(figure))));
            }
        }
        return rows;
    }

    private static Row row(String name, List<TrialCourse> courses, Function<TrialCourse, String> value) {
        return new Row(name, courses.stream().map(value).toList());
    }

    private static String shown(OptionalDouble value) {
        return value.isPresent() ? say("%.3g", value.getAsDouble()) : "-";
    }

    private ObjectNode json() {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.put("cause", treatment.branch().cause().title())
                .put("letter", String.valueOf(treatment.branch().cause().letter()))
                .put("fix", treatment.branch().fix().name().toLowerCase(Locale.ROOT));
        Conclusion conclusion = conclusion();
        json.put("answer", conclusion.answer());
        ArrayNode doses = json.putArray("patches");
        for (Dose dose : treatment.doses()) {
            ObjectNode one = doses.addObject().put("name", dose.name()).put("yaml", dose.yaml());
            ArrayNode settings = one.putArray("settings");
            dose.patch().settings().forEach(settings::add);
            one.put("effect", dose.patch().effect().name().toLowerCase(Locale.ROOT));
            dose.refusal().ifPresent(why -> one.put("refused", why));
        }
        ArrayNode elsewhere = json.putArray("elsewhere");
        treatment
                .prescription()
                .elsewhere()
                .forEach(
                        each -> elsewhere.addObject().put("where", each.where()).put("change", each.change()));
        treatment.untried().ifPresent(why -> json.put("untried", why));
        treatment.trial().ifPresent(trial -> json.set("trial", json(trial)));
        return json;
    }

    private static ObjectNode json(Trial trial) {
        ObjectNode json = JsonNodeFactory.instance
                .objectNode()
                .put("steps", trial.batches().count())
                .put("rollouts", trial.batches().rollouts())
                .put("first_batch", trial.batches().first())
                .put("last_batch", trial.batches().last())
                .put("staleness_mean", trial.batches().stalenessMean())
                .put("seconds", trial.seconds())
                .put("cut", trial.isCut())
                .put("not_as_recorded", trial.batches().notAsRecorded());
        json.putObject("unpatched")
                .put("followed", trial.unpatched().followed())
                .put("gone", trial.unpatched().gone());
        json.set("recorded", json(trial.recorded(), false));
        ArrayNode patched = json.putArray("patched");
        trial.patched().forEach(course -> patched.add(json(course, trial.isMended(course))));
        trial.smallest().ifPresent(course -> json.put("smallest", course.name()));
        return json;
    }

    private static ObjectNode json(TrialCourse course, boolean isMended) {
        ObjectNode json = JsonNodeFactory.instance
                .objectNode()
                .put("name", course.name())
                .put("cause_steps", course.causeSteps())
                .put("alarm_steps", course.diagnoses().alarmSteps())
                .put("tokens", course.tokens().of())
                .put("tokens_masked", course.tokens().masked())
                .put("tokens_lost", course.lost())
                .put("sequences", course.sequences().of())
                .put("sequences_masked", course.sequences().masked())
                .put("guarded_steps", course.guardedSteps())
                .put("mends", isMended);
        course.diagnoses().firstAlarm().ifPresent(batch -> json.put("first_alarm", batch));
        course.diagnoses()
                .last()
                .ifPresent(last -> json.put("last", last.cause().title()));
        Arrays.stream(TrialFigure.values())
                .forEach(figure -> course.mean(figure)
                        .ifPresent(mean -> json.put(figure.name().toLowerCase(Locale.ROOT), mean)));
        return json;
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
