// The line codec takes every byte through, and survives everything that is not the protocol.
#include "control/line.h"

#include <random>

#include "control/check.h"
#include "control/dispatch.h"

namespace {

using control::Answer;
using control::LineReader;
using control::Request;

std::string Encoded(std::string_view bytes) {
  std::string out;
  control::AppendEncoded(&out, bytes);
  return out;
}

void EveryByteComesThrough() {
  std::string all;
  for (int c = 0; c < 256; c++) all.push_back(static_cast<char>(c));
  std::string text = Encoded(all);
  std::string back;
  CHECK(control::Decode(text, &back) && back == all);
  CHECK(text.find(' ') == std::string::npos && text.find('\n') == std::string::npos);
  CHECK(Encoded("a b=ü") == "a%20b%3D%C3%BC");
  CHECK(Encoded("AZaz09._/-:,+") == "AZaz09._/-:,+");
}

void BrokenCodesAreRefused() {
  std::string bytes;
  for (std::string_view bad : {"%", "%4", "%G0", "%0g", "%c3", "a%", "a b", "a=b", "\n", "~", "\xc3"}) {
    CHECK(!control::Decode(bad, &bytes));
  }
  CHECK(control::Decode("", &bytes) && bytes.empty());
}

void NumbersAreStrict() {
  uint64_t number = 0;
  CHECK(control::ParseUnsigned("18446744073709551615", &number) && number == UINT64_MAX);
  for (std::string_view bad : {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "1.0"}) {
    CHECK(!control::ParseUnsigned(bad, &number));
  }
  int64_t signed_number = 0;
  CHECK(control::ParseSigned("-9223372036854775808", &signed_number) && signed_number == INT64_MIN);
  CHECK(!control::ParseSigned("9223372036854775808", &signed_number));
}

void RequestsAreTakenApart() {
  Request request;
  CHECK(control::ParseRequest("7 advance kind=turn lane=3 meta=%7B%7D n=a n=b e=", &request).ok());
  CHECK(request.id == 7 && request.verb == "advance" && request.fields.size() == 6);
  CHECK(*request.Find("meta") == "{}" && *request.Find("n") == "a" && request.Find("e")->empty());
  CHECK(request.Unsigned("lane").value() == 3);
  CHECK(!request.Unsigned("lane", 2).ok() && !request.Unsigned("kind").ok() && !request.Unsigned("none").ok());
  CHECK(request.UnsignedOr("none", 9).value() == 9 && !request.UnsignedOr("kind", 9).ok());
  CHECK(control::ParseRequest("8 hello", &request).ok() && request.fields.empty());
}

void WrongRequestsKeepTheirNumber() {
  Request request;
  for (std::string_view bad :
       {"5", "5 ", "5 v ", "5  v", "5 v  a=b", "5 v a", "5 v =b", "5 v A=b", "5 v a=%zz", "5 v a=b=c"}) {
    CHECK(!control::ParseRequest(bad, &request).ok());
    CHECK(request.id == 5);
  }
  for (std::string_view bad : {"", " ", "v a=b", "-1 v", "99999999999999999999 v"}) {
    CHECK(!control::ParseRequest(bad, &request).ok());
    CHECK(request.id == 0);
  }
}

void AnswersAreLines() {
  std::string out;
  Answer answer(8);
  answer.Add("name", "a b");
  answer.AddSigned("time", -5);
  answer.AppendTo(&out);
  CHECK(out == "8 ok name=a%20b time=-5\n");
  answer.Fail(sys::Error{ENOENT, "renameat2"});
  answer.Add("late", "dropped");
  out.clear();
  answer.AppendTo(&out);
  CHECK(out == "8 err errno=2 name=ENOENT where=renameat2\n");
}

void LinesComeInAnyPieces() {
  std::string input;
  for (int i = 0; i < 300; i++) input += std::string(static_cast<size_t>(i % 37), 'x') + std::to_string(i) + "\n";
  std::mt19937 random(1);
  LineReader reader;
  std::string output;
  for (size_t at = 0; at < input.size();) {
    size_t piece = std::min<size_t>(random() % 50, input.size() - at);
    reader.Append(std::string_view(input).substr(at, piece));
    at += piece;
    std::string_view line;
    while (reader.Take(&line) == LineReader::Next::kLine) output.append(line).push_back('\n');
  }
  CHECK(output == input);
}

void OverlongLinesAreToldOnceAndSkipped() {
  for (size_t piece : {size_t{1} << 14, control::kMaxLineBytes * 3}) {
    LineReader reader;
    std::string input = "41 v a=" + std::string(control::kMaxLineBytes * 2, 'x') + "\n42 hello\n";
    int overlong = 0;
    std::string lines;
    for (size_t at = 0; at < input.size(); at += piece) {
      reader.Append(std::string_view(input).substr(at, piece));
      std::string_view line;
      for (LineReader::Next next; (next = reader.Take(&line)) != LineReader::Next::kNothing;) {
        if (next == LineReader::Next::kLine) lines.append(line);
        if (next != LineReader::Next::kOverlong) continue;
        overlong++;
        Request request;
        CHECK(!control::ParseRequest(line, &request).ok() || request.id == 41);
        CHECK(request.id == 41);
      }
    }
    CHECK(overlong == 1);
    CHECK(lines == "42 hello");
  }
  LineReader reader;
  std::string_view line;
  reader.Append(std::string(control::kMaxLineBytes, 'y') + "\n");
  CHECK(reader.Take(&line) == LineReader::Next::kLine && line.size() == control::kMaxLineBytes);
}

// Whatever comes in, there is one answer a line, and each is a proper line itself.
void NoiseGetsAnswers() {
  std::mt19937 random(2);
  const std::string alphabet = "0123456789 vab=%.\n\n\xff";
  control::Handler echo = [](const Request& request, Answer* answer) {
    for (const control::Field& field : request.fields) answer->Add(field.key, field.value);
    return sys::Result<void>();
  };
  LineReader reader;
  std::string out;
  size_t lines = 0;
  for (int round = 0; round < 20000; round++) {
    std::string bytes;
    for (unsigned length = random() % 20; length > 0; length--) bytes.push_back(alphabet[random() % alphabet.size()]);
    for (char c : bytes) lines += c == '\n' ? 1 : 0;
    reader.Append(bytes);
    CHECK(!control::AnswerLines(&reader, echo, &out, SIZE_MAX));
  }
  size_t answers = 0;
  for (char c : out) answers += c == '\n' ? 1 : 0;
  CHECK(answers == lines);
}

void AnswersStopAtTheLimit() {
  LineReader reader;
  reader.Append("1 a\n2 b\n3 c\n");
  std::string out;
  control::Handler nothing = [](const Request&, Answer*) { return sys::Result<void>(); };
  CHECK(control::AnswerLines(&reader, nothing, &out, 1) && out == "1 ok\n");
  CHECK(!control::AnswerLines(&reader, nothing, &out, 1000) && out == "1 ok\n2 ok\n3 ok\n");
}

}  // namespace

int main() {
  EveryByteComesThrough();
  BrokenCodesAreRefused();
  NumbersAreStrict();
  RequestsAreTakenApart();
  WrongRequestsKeepTheirNumber();
  AnswersAreLines();
  LinesComeInAnyPieces();
  OverlongLinesAreToldOnceAndSkipped();
  NoiseGetsAnswers();
  AnswersStopAtTheLimit();
  return check::Finish("control/line_test");
}
