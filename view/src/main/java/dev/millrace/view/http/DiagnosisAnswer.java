package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Examination;
import dev.millrace.audit.doctor.ExaminationReader;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.report.Report;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.report.TreatmentReport;
import dev.millrace.view.follow.OpenRun;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/** What the doctor has to say: of a log everything, of an archive what its batches tell. */
public final class DiagnosisAnswer {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    /** On one thread, beside a run that may go on. */
    private static final TrialLimit TRIED = new TrialLimit(128, Duration.ofSeconds(10));

    private DiagnosisAnswer() {}

    /** Of a run's log, read from beginning to end, as {@code millrace doctor} does. */
    public static ObjectNode of(OpenRun run, LogConnection connection, Map<String, Long> lags, List<Alarm> alarms)
            throws InterruptedException {
        Examination examination = new ExaminationReader(connection, PATIENCE, Clock.systemUTC()).read(lags, alarms);
        return treated(
                json(new Doctor().findings(examination), examination.steps().size()), run, examination.offPolicy());
    }

    /** Of an archive. */
    public static ObjectNode of(OpenRun run) throws InterruptedException {
        Diagnosis[] last = new Diagnosis[1];
        int[] steps = new int[1];
        new WhatIf(
                        run.recorded(),
                        StepRange.ALL,
                        List.of(new Alternative("recorded", run.config().algorithm())))
                .replay(1, step -> {
                    steps[0]++;
                    step.diagnoses().get(0).ifPresent(found -> last[0] = found);
                });
        Optional<Diagnosis> found = Optional.ofNullable(last[0]);
        return treated(json(found.map(Doctor::offPolicy).orElse(List.of()), steps[0]), run, found);
    }

    /** With what the smallest fix would have done, as a part of a report; nothing where nothing is to be answered. */
    private static ObjectNode treated(ObjectNode json, OpenRun run, Optional<Diagnosis> diagnosis)
            throws InterruptedException {
        if (diagnosis.filter(found -> !found.isHealthy()).isPresent()) {
            Treatment treatment = Treatment.of(run.recorded(), run.config(), diagnosis.get(), TRIED, 1);
            json.set(
                    "treatment",
                    Report.of("The smallest change", List.of())
                            .concluding(TreatmentReport.conclusion(treatment))
                            .with(TreatmentReport.section(treatment))
                            .tree());
        }
        return json;
    }

    private static ObjectNode json(List<Finding> findings, int steps) {
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("steps", steps);
        ArrayNode array = json.putArray("findings");
        findings.forEach(finding -> array.addObject()
                .put("weight", finding.weight().name().toLowerCase(Locale.ROOT))
                .put("subject", finding.subject())
                .put("sentence", finding.sentence())
                .put("advice", finding.advice()));
        return json;
    }
}
