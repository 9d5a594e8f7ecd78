package dev.millrace.chaos.halt;

import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Has a class tell {@link HaltPoint} where its points begin and where they return. */
final class HaltCalls {
    private static final int API = Opcodes.ASM9;
    private static final String HALT_POINT = Type.getInternalName(HaltPoint.class);

    private HaltCalls() {}

    /** The class with the calls in it; a point that ends with an exception has not happened. */
    static byte[] telling(byte[] type, List<ProtocolPoint> points) {
        ClassReader reader = new ClassReader(type);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(
                new ClassVisitor(API, writer) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access,
                            String name,
                            String descriptor,
                            @Nullable String signature,
                            String @Nullable [] exceptions) {
                        MethodVisitor next = Objects.requireNonNull(
                                super.visitMethod(access, name, descriptor, signature, exceptions));
                        return points.stream()
                                .filter(point -> point.method().equals(name))
                                .findFirst()
                                .<MethodVisitor>map(point -> new Calls(next, point))
                                .orElse(next);
                    }
                },
                0);
        return writer.toByteArray();
    }

    private static final class Calls extends MethodVisitor {
        private final ProtocolPoint point;

        Calls(MethodVisitor next, ProtocolPoint point) {
            super(API, next);
            this.point = point;
        }

        private void tell(HaltPoint.When when) {
            super.visitLdcInsn(when.name());
            super.visitLdcInsn(point.word());
            super.visitMethodInsn(
                    Opcodes.INVOKESTATIC, HALT_POINT, "reached", "(Ljava/lang/String;Ljava/lang/String;)V", false);
        }

        @Override
        public void visitCode() {
            super.visitCode();
            tell(HaltPoint.When.BEFORE);
        }

        @Override
        public void visitInsn(int code) {
            if (code >= Opcodes.IRETURN && code <= Opcodes.RETURN) {
                tell(HaltPoint.When.AFTER);
            }
            super.visitInsn(code);
        }
    }
}
