// Prints all message types of Envoy's API as one descriptor set.
package main

import (
	"os"
	"slices"

	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

func message(m *descriptorpb.DescriptorProto) {
	if m.GetOptions().GetMapEntry() {
		m.Options = &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}
	} else {
		m.Options = nil
	}
	for _, f := range m.Field {
		field(f)
	}
	for _, f := range m.Extension {
		field(f)
	}
	for _, o := range m.OneofDecl {
		o.Options = nil
	}
	for _, e := range m.EnumType {
		enum(e)
	}
	for _, n := range m.NestedType {
		message(n)
	}
}

func field(f *descriptorpb.FieldDescriptorProto) {
	if f.Options != nil && f.Options.Packed != nil {
		f.Options = &descriptorpb.FieldOptions{Packed: f.Options.Packed}
	} else {
		f.Options = nil
	}
}

func enum(e *descriptorpb.EnumDescriptorProto) {
	if e.GetOptions().GetAllowAlias() {
		e.Options = &descriptorpb.EnumOptions{AllowAlias: proto.Bool(true)}
	} else {
		e.Options = nil
	}
	for _, v := range e.Value {
		v.Options = nil
	}
}

func main() {
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		imports := f.Imports()
		for i := 0; i < imports.Len(); i++ {
			if !imports.Get(i).IsPlaceholder() {
				add(imports.Get(i).FileDescriptor)
			}
		}
		p := protodesc.ToFileDescriptorProto(f)
		p.SourceCodeInfo, p.Options = nil, nil
		for _, m := range p.MessageType {
			message(m)
		}
		for _, e := range p.EnumType {
			enum(e)
		}
		for _, x := range p.Extension {
			field(x)
		}
		for _, s := range p.Service {
			s.Options = nil
			for _, m := range s.Method {
				m.Options = nil
			}
		}
		set.File = append(set.File, p)
	}
	files := map[string]protoreflect.FileDescriptor{}
	names := []string{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		files[f.Path()] = f
		names = append(names, f.Path())
		return true
	})
	slices.Sort(names)
	for _, name := range names {
		add(files[name])
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(bytes)
}
