package dev.millrace.report;

import java.util.ArrayList;
import java.util.List;

/** A report as text or Markdown: origin, verdict, and the open sections' notes and tables. */
public final class ReportText {
    private ReportText() {}

    /** For the {@linkplain Lines#width() screen}, without the title. */
    public static List<String> lines(Report report) {
        List<String> lines = new ArrayList<>();
        if (report.origin() != null) {
            report.origin().lines().forEach(line -> lines.addAll(Lines.wrapped("", line)));
        }
        if (report.conclusion() != null) {
            lines.addAll(conclusion(report.conclusion()));
        }
        report.verdict().forEach(sentence -> lines.addAll(Lines.wrapped("", sentence)));
        for (Section section : open(report)) {
            lines.add("");
            if (!section.title().isEmpty()) {
                lines.addAll(Lines.wrapped("", section.title()));
            }
            for (Table table : section.tables()) {
                lines.addAll(TableText.lines(table));
            }
            section.notes().forEach(note -> lines.addAll(Lines.wrapped("  ", note)));
        }
        return lines;
    }

    private static List<String> conclusion(Conclusion conclusion) {
        List<String> lines = new ArrayList<>(Lines.labelled("asked", conclusion.asked()));
        lines.addAll(Lines.labelled("answer", conclusion.answer()));
        if (conclusion.figure() != null) {
            lines.addAll(Lines.labelled(
                    "figure",
                    conclusion.figure().name() + ": " + conclusion.figure().shown()));
        }
        if (!conclusion.sure().isEmpty()) {
            lines.addAll(Lines.labelled("sure", conclusion.sure()));
        }
        lines.add("");
        return lines;
    }

    public static String markdown(Report report) {
        StringBuilder text = new StringBuilder();
        if (report.origin() != null) {
            text.append(String.join("\n", report.origin().lines())).append("\n\n");
        }
        if (report.conclusion() != null) {
            text.append("**").append(report.conclusion().answer()).append("**\n\n");
        }
        report.verdict().forEach(sentence -> text.append(sentence).append("\n\n"));
        for (Section section : open(report)) {
            if (!section.title().isEmpty()) {
                text.append(section.title()).append("\n\n");
            }
            section.tables()
                    .forEach(table -> text.append(TableText.markdown(table)).append('\n'));
            section.notes().forEach(note -> text.append(note).append("\n\n"));
        }
        return text.toString();
    }

    private static List<Section> open(Report report) {
        return report.sections().stream()
                .filter(section -> !section.closed())
                .filter(section ->
                        !section.tables().isEmpty() || !section.notes().isEmpty())
                .toList();
    }
}
