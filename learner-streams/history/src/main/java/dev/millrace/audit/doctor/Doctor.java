package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.log.Alarm;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Judges an examination. Pure and thread-safe; each rule is a method, and says nothing where nothing is wrong.
 *
 * <p>What is judged is the examination's epoch; the ledger has to add up over all of them. Rules about training look at the last ten
 * steps. Bounds are those at which a person should look, not at
 * which anything is masked or stopped.
 */
public final class Doctor {
    private static final String OFF_POLICY = "off policy";

    /** What there is to say, most important first. */
    public List<Finding> findings(Examination examination) {
        List<Finding> findings = new ArrayList<>();
        LedgerRules.ledger(examination.account().balance(), findings);
        alarms(examination.alarms(), findings);
        examination.offPolicy().ifPresent(diagnosis -> findings.addAll(offPolicy(diagnosis)));
        ProgressRules.progress(examination, findings);
        ProgressRules.strayVersion(examination, findings);
        ProgressRules.serving(examination, findings);
        LedgerRules.lost(examination, findings);
        StepRules.frozen(examination.steps(), findings);
        StepRules.training(examination.steps(), findings);
        HeldOutRules.heldOut(examination, findings);
        StepRules.idle(examination.steps(), findings);
        findings.sort(Comparator.comparing(Finding::weight)); // stable
        return findings;
    }

    private static void alarms(List<Alarm> alarms, List<Finding> findings) {
        alarms.forEach(alarm -> findings.add(new Finding(
                Weight.SICK, "alarm " + alarm.name(), alarm.subject() + ": " + alarm.sentence(), alarm.remedy())));
    }

    /** What the decision tree of the corrections says: every branch that holds, by name; then mistakes in reading or answering it. */
    public static List<Finding> offPolicy(Diagnosis diagnosis) {
        List<Finding> findings = new ArrayList<>();
        diagnosis.branches().stream()
                .filter(branch -> branch.cause() != Cause.NONE)
                .forEach(branch -> findings.add(new Finding(
                        weight(branch),
                        OFF_POLICY,
                        branch.finding(),
                        branch.fix().advice())));
        diagnosis.pitfalls().forEach(pitfall -> {
            String[] parts = pitfall.sentence().split(": ", 2);
            findings.add(new Finding(Weight.WEAK, OFF_POLICY, parts[0], parts[1]));
        });
        return findings;
    }

    private static Weight weight(Branch branch) {
        return switch (branch.cause()) {
            case ENGINE_MISMATCH -> branch.fix() == Fix.ALIGN_ENGINES ? Weight.SICK : Weight.BROKEN; // other tokens
            case VARIANCE_BLOW_UP, LENGTH_SURGE, CLIP_SATURATION -> Weight.SICK;
            case POLICY_STALENESS, TOKEN_DRIFT -> Weight.WEAK;
            case NONE -> Weight.NOTE;
        };
    }
}
